//! Reports as text and JSON.

use super::letter::LetterRow;
use super::run::Report;
use super::workload::{Mode, Workload};

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
        Workload::Zipf { theta, jobs, file_pages } => format!("zipf θ {theta}, {jobs} × {file_pages} pages"),
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

/// The cover letter's table: refaults per read, published and simulated, and the changes that matter.
pub fn letter_text(rows: &[LetterRow]) -> String {
    let mut out = format!(
        "{:<12} {:>4} {:>4} | {:>7} {:>7} {:>7} | {:>7} {:>7} {:>7} {:>7} | {:>6} {:>6} {:>6} | {:>6} {:>6} | {:>5}\n",
        "refaults per", "GiB", "θ", "pub", "pub", "pub", "sim", "sim", "sim", "sim", "pub", "v3-7.3", "v4-7.3", "pub", "sim", "reads"
    );
    out.push_str(&format!(
        "{:<12} {:>4} {:>4} | {:>7} {:>7} {:>7} | {:>7} {:>7} {:>7} {:>7} | {:>6} {:>6} {:>6} | {:>6} {:>6} | {:>5}\n",
        "access by", "", "", "clru", "before", "FG", "clru", "7.3", "fg-v3", "fg-v4", "FG %", "%", "%", "7.3 %", "7.3 %", "run"
    ));
    for row in rows {
        let published = |at: usize| row.published.map_or_else(|| "-".to_owned(), |published| format!("{:.5}", published[at]));
        let percent = |change: Option<f64>| change.map_or_else(|| "-".to_owned(), |change| format!("{change:+.1}"));
        let [v3, v4] = row.simulated_changes();
        let (published_classical, classical) = row.classical_changes();
        let [s0, s1, s2, s3] = row.simulated;
        out.push_str(&format!(
            "{:<12} {:>4} {:>4} | {:>7} {:>7} {:>7} | {:>7.5} {:>7.5} {:>7.5} {:>7.5} | {:>6} {:>6} {:>6} | {:>6} {:>6} | {:>4.0}%\n",
            mode(row.mode),
            row.memory_gib,
            row.theta,
            published(0),
            published(1),
            published(2),
            s0,
            s1,
            s2,
            s3,
            percent(row.published_change()),
            percent(Some(v3)),
            percent(Some(v4)),
            percent(published_classical),
            percent(Some(classical)),
            row.run * 100.0
        ));
    }
    out
}

/// The same as JSON (schema `observer.cover-letter/1`).
pub fn letter_json(rows: &[LetterRow]) -> serde_json::Result<String> {
    serde_json::to_string(&serde_json::json!({ "schema": "observer.cover-letter/1", "rows": rows }))
}
