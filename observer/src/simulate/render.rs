//! Reports as text and JSON.

use super::letter::{LetterRow, SIMULATED};
use super::run::Report;
use super::workload::{Mode, Workload};
use super::zipf::Scatter;

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "read",
        Mode::Mmap => "mmap",
        Mode::MmapRandom => "mmap, random",
    }
}

/// What was run, in one line.
fn title(report: &Report) -> String {
    let what = match report.workload {
        Workload::Zipf { theta, jobs, file_pages, scatter, miss_cost } => {
            let scattered = if scatter == Scatter::Shuffle { "" } else { " scattered as by fio" };
            let paced = if miss_cost > 1 { format!(", a miss as long as {miss_cost} hits") } else { String::new() };
            format!("zipf θ {theta}, {jobs} × {file_pages} pages{scattered}{paced}")
        }
        Workload::ScanAndHot { hot_pages, cold_files, cold_pages, hot_per_cold } => {
            format!("scan-and-hot, hot {hot_pages} pages, cold {cold_files} × {cold_pages} pages, {hot_per_cold} hot per cold")
        }
        Workload::Sequential => "sequential".to_owned(),
        Workload::Loop { file_pages } => format!("loop over {file_pages} pages"),
        Workload::Mixed { theta, file_pages, anon_pages, anon_percent } => {
            format!("mixed θ {theta}, file {file_pages} pages, anon {anon_pages} pages, {anon_percent} % anon")
        }
    };
    format!("{what}, {}, {} pages of memory, ramp {}, seed {}", mode(report.mode), report.memory, report.ramp, report.seed)
}

/// The report as a table.
pub fn text(report: &Report) -> String {
    let mut out = title(report);
    let width = report.rows.iter().map(|row| row.rules.chars().count()).max().unwrap_or(0).max(5);
    out.push_str(&format!(
        "\n\n{:<width$} {:>12} {:>12} {:>12} {:>10} {:>12} {:>12} {:>7}\n",
        "rules", "accesses", "misses", "refaults", "per access", "protected", "promotions", "agings"
    ));
    for row in &report.rows {
        out.push_str(&format!(
            "{:<width$} {:>12} {:>12} {:>12} {:>10.5} {:>12} {:>12} {:>7}\n",
            row.rules,
            row.accesses,
            row.misses,
            row.refaults[0] + row.refaults[1],
            row.refaults_per_access,
            row.protected,
            row.promotions,
            row.agings
        ));
    }
    out
}

/// The report as one JSON object (schema `observer.simulate/1`).
pub fn json(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string(report)
}

/// The cover letter's table: refaults per read, published and simulated; then the changes that it argues with.
pub fn letter_text(rows: &[LetterRow]) -> String {
    let head = |row: &LetterRow| format!("{:<12} {:>3} GiB θ {:<3}", mode(row.mode), row.memory_gib, row.theta);
    let dash = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    let blank = " ".repeat(24);
    let mut out = format!(
        "refaults per read\n{blank} | published: {:>7} {:>7} | simulated: {:>7} {:>7} {:>7} {:>7} | 1 in, reads\n",
        "before", "FG", "7.3", "7.3*", "fg-v3", "fg-v4"
    );
    for row in rows {
        let published = |at: usize| dash(row.published.map(|published| format!("{:.5}", published[at])));
        let [classical, v7_3, unlifted, v3, v4] = row.simulated;
        out.push_str(&format!(
            "{:<24} | {:>10} {:>7} {:>7} | {classical:>10.5} {v7_3:>7.5} {unlifted:>7.5} {v3:>7.5} {v4:>7.5} | {:>4} {:>5.1}%\n",
            head(row),
            published(0),
            published(1),
            published(2),
            row.scale,
            row.run * 100.0
        ));
    }
    out.push_str(&format!(
        "\nchange, %{} | before to FG: {:>14} {:>14} {:>14} | classical to FG: {:>11} {:>14} | to before: {:>8} {:>14}\n",
        " ".repeat(15),
        "7.3→v3",
        "7.3→v4",
        "7.3*→v4",
        "→v3",
        "→v4",
        "→7.3",
        "→7.3*"
    ));
    for row in rows {
        let changes = row.changes();
        let published = |at: usize| dash(changes[at].published.map(|change| format!("{change:+.1}")));
        let simulated = |at: usize| {
            let difference = changes[at].difference().map_or_else(String::new, |points| format!(" ({points:+.1})"));
            format!("{:+.1}{difference}", changes[at].simulated)
        };
        out.push_str(&format!(
            "{:<24} | {:>13} {:>14} {:>14} {:>14} | {:>13} {:>14} {:>14} | {:>8} {:>14} {:>14}\n",
            head(row),
            published(0),
            simulated(0),
            simulated(1),
            simulated(2),
            published(3),
            simulated(3),
            simulated(4),
            published(5),
            simulated(5),
            simulated(6)
        ));
    }
    out.push_str(
        "published (classical first), simulated, in brackets percentage points apart; 7.3*: referenced-lifts=off; 1 in: pages and reads divided by\n",
    );
    out
}

/// The same as JSON (schema `observer.cover-letter/2`).
pub fn letter_json(rows: &[LetterRow]) -> serde_json::Result<String> {
    let rows = rows.iter().map(|row| {
        let mut value = serde_json::to_value(row)?;
        value["changes"] = serde_json::to_value(row.changes())?;
        Ok(value)
    });
    let rows = rows.collect::<serde_json::Result<Vec<_>>>()?;
    serde_json::to_string(&serde_json::json!({ "schema": "observer.cover-letter/2", "simulated": SIMULATED, "rows": rows }))
}
