//! `observer simulate`.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::simulate::{Simulate, Tables};
use crate::exit::{Code, Failure};
use crate::simulate::{cover_letter, render, run as simulate};

/// Runs it and prints the result on standard output.
pub(super) fn run(args: &Simulate) -> Result<Code> {
    let mut text = render(args)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(Code::Ok)
}

/// The result as text or JSON, as asked.
fn render(args: &Simulate) -> Result<String> {
    let usage = |line: String| Failure::new(Code::Usage, line);
    let progress = progress();
    let tell = |done: usize, of: usize| {
        progress.set_length(of as u64);
        progress.set_position(done as u64);
    };
    let text = match (&args.workload, args.table.table) {
        (Some(workload), _) => {
            let report = simulate(&workload.config().map_err(usage)?, &tell);
            if workload.run().json { render::json(&report)? } else { render::text(&report) }
        }
        (None, Some(Tables::CoverLetter)) => {
            let rows = cover_letter(&args.table.letter().map_err(usage)?, &tell);
            if args.table.json { render::letter_json(&rows)? } else { render::letter_text(&rows) }
        }
        (None, None) => {
            return Err(usage(
                "simulate what? Give a workload (zipf, scan-and-hot, sequential, loop, mixed) or --table cover-letter".to_owned(),
            )
            .into());
        }
    };
    progress.finish_and_clear();
    Ok(text)
}

/// A bar over the runs; nothing where stderr is no terminal.
fn progress() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} runs {elapsed}").unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = bar.with_style(style);
    // A run takes seconds: the clock shows that it goes on.
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::exit::code_of;

    fn output(line: &str) -> Result<String> {
        match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Some(Command::Simulate(args)) => render(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_run_has_a_row_for_each_rule_set() {
        let line = "observer simulate zipf --file 4M --memory 2M --reads 5000 --ramp 1k --rules 7.3 --rules classical --threads 1";
        let text = output(line).unwrap();
        assert!(text.starts_with("zipf θ 0.9, 1 × 1024 pages, read, 509 pages of memory, ramp 1000, seed 1\n"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&output(&format!("{line} --json")).unwrap()).unwrap();
        assert_eq!((&json["schema"], &json["workload"]), (&"observer.simulate/1".into(), &"zipf".into()));
        let rows = json["rows"].as_array().unwrap();
        assert_eq!(rows.iter().map(|row| row["rules"].as_str().unwrap()).collect::<Vec<_>>(), ["7.3", "classical"]);
        for row in rows {
            let refaults = row["refaults"][1].as_u64().unwrap();
            assert_eq!(row["accesses"], 5000);
            assert!(refaults > 0 && refaults <= row["misses"].as_u64().unwrap(), "{row}");
            assert!(text.contains(&format!(" {refaults} ")), "{refaults} in {text}");
        }
    }

    #[test]
    fn the_table_has_the_letters_rows() {
        let line = "observer simulate --table cover-letter --memory 4M --reads 2000 --only read --threads 2";
        let text = output(line).unwrap();
        assert!(text.contains("0.20074") && text.lines().count() == 13, "{text}");
        let json: serde_json::Value = serde_json::from_str(&output(&format!("{line} --json")).unwrap()).unwrap();
        assert_eq!((&json["schema"], json["rows"].as_array().unwrap().len()), (&"observer.cover-letter/2".into(), 4));
    }

    #[test]
    fn what_does_not_fit_or_is_missing_is_wrong_usage() {
        for line in ["observer simulate loop --file 1G --memory 64K", "observer simulate", "observer simulate --json"] {
            assert_eq!(code_of(&output(line).unwrap_err()), Some(Code::Usage), "{line}");
        }
    }
}
