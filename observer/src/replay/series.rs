//! The files of one recording, read one after another.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;

use anyhow::{Context, Result};

use super::recorded::Opened;
use crate::exit::{Code, Failure};
use crate::stream::damage::Damage;
use crate::stream::header::Part;
use crate::stream::{Event, Header, Reader};

/// Puts the files of a recording in order.
///
/// # Errors
/// When one cannot be read, or they do not belong together.
pub(super) fn sort(files: Vec<Opened>) -> Result<Vec<Opened>> {
    if files.len() < 2 {
        return Ok(files);
    }
    let mut sorted = Vec::with_capacity(files.len());
    let mut first: Option<(Arc<Header>, String)> = None;
    for file in files {
        if !file.is_file() {
            return Err(refuse(&file.name, "is no file of a recording in several files"));
        }
        let header = Reader::new(file.read()).with_context(|| file.name.clone())?.header();
        let Some(part) = header.part else { return Err(refuse(&file.name, "is a recording of its own: replay it alone")) };
        let (one, name) = first.get_or_insert_with(|| (Arc::clone(&header), file.name.clone()));
        if one.part.map(|part| part.run) != Some(part.run) || (&one.host, &one.kernel) != (&header.host, &header.kernel) {
            return Err(refuse(&file.name, &format!("does not belong to the recording of {name}")));
        }
        sorted.push((part.number, file));
    }
    sorted.sort_by_key(|(number, _)| *number);
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(refuse(&twice[1].1.name, &format!("is the same part as {}", twice[0].1.name)));
    }
    Ok(sorted.into_iter().map(|(_, file)| file).collect())
}

fn refuse(name: &str, why: &str) -> anyhow::Error {
    Failure::new(Code::Usage, format!("{name} {why}")).into()
}

/// One batch's worth of what the files hold.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// Rows missing before the batch, and when.
    pub(super) gap: Option<(u64, u64)>,
    /// What was noticed.
    pub(super) notes: Vec<String>,
    /// Whether rows are missing that had been recorded.
    pub(super) damaged: bool,
    /// Nothing follows.
    pub(super) ended: bool,
}

/// Reads files in order.
pub(super) struct Series {
    reader: Reader<Box<dyn Read + Send>>,
    rest: VecDeque<Opened>,
    /// Name of the current file, where there are several.
    name: Option<String>,
    /// Flaws of the current file told.
    told: usize,
    /// Rows missing between the last file's and the current one's.
    missing: u64,
}

impl Series {
    /// `reader` reads the first file, called `name`; `rest` are the others.
    pub(super) fn new(reader: Reader<Box<dyn Read + Send>>, name: String, rest: impl IntoIterator<Item = Opened>) -> Series {
        let rest: VecDeque<Opened> = rest.into_iter().collect();
        Series { reader, name: (!rest.is_empty()).then_some(name), rest, told: 0, missing: 0 }
    }

    /// Appends the next batch's events.
    pub(super) fn next(&mut self, out: &mut Vec<Event>) -> Result<Step> {
        let mut step = Step::default();
        loop {
            let batch = self.reader.next_batch(out).with_context(|| self.name.clone().unwrap_or_default());
            self.flaws(&mut step);
            match batch? {
                Some(info) => {
                    let missing = info.missing + std::mem::take(&mut self.missing);
                    step.gap = (missing > 0).then_some((*info.ts.start(), missing));
                    return Ok(step);
                }
                None => {
                    if self.reader.more_damage() > 0 {
                        step.notes.push(self.named(format!("{} more flaws", self.reader.more_damage())));
                    }
                    if !self.next_file(&mut step)? {
                        step.ended = true;
                        return Ok(step);
                    }
                }
            }
        }
    }

    fn next_file(&mut self, step: &mut Step) -> Result<bool> {
        let Some(file) = self.rest.pop_front() else { return Ok(false) };
        let reader = Reader::new(file.read()).with_context(|| file.name.clone())?;
        let first_row = |part: Option<Part>| part.map_or(0, |part| part.first_row);
        let end = first_row(self.reader.header().part) + self.reader.rows();
        self.missing += first_row(reader.header().part).saturating_sub(end);
        if self.missing > 0 {
            step.damaged = true;
            step.notes.push(format!("{} rows are missing before {}", self.missing, file.name));
        }
        (self.reader, self.name, self.told) = (reader, Some(file.name), 0);
        Ok(true)
    }

    fn flaws(&mut self, step: &mut Step) {
        let new = &self.reader.damage()[self.told..];
        step.damaged |= new.iter().any(Damage::is_loss);
        step.notes.extend(new.iter().map(|flaw| self.named(flaw.to_string())));
        self.told = self.reader.damage().len();
    }

    fn named(&self, note: String) -> String {
        match &self.name {
            Some(name) => format!("{name}: {note}"),
            None => note,
        }
    }
}

/// As the reader's thread hands errors over.
pub(super) fn into_io(error: anyhow::Error) -> io::Error {
    match error.downcast::<io::Error>() {
        Ok(error) => error,
        Err(error) => io::Error::other(format!("{error:#}")),
    }
}
