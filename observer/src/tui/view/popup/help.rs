//! Keys, and what the words on the screen mean.

use super::super::Ctx;
use super::{Lines, wrap};
use crate::report::num::pad_end;
use crate::tui::keys::BINDINGS;
use crate::tui::state::seekable;

/// Words whose meaning decides how a number is read.
const WORDS: [(&str, &str); 10] = [
    ("predicted", "where a rule set would have each folio, fed the same events under the kernel's own clock"),
    ("actual", "where the kernel has it, read off the folio's flags"),
    ("promotion", "a rise of a folio's generation while it is on a list; an insertion or a refault is none"),
    ("only it", "promoted by the rule set and not by the kernel in the same window; \"kernel\" is the reverse"),
    ("keeps", "evicted by the kernel while the rule set had it younger than its oldest generation"),
    ("avoid(able)", "refaulted after such an eviction: a miss that these rules might have spared"),
    ("fidelity", "how often the model of this kernel's own rules equals its flags: the tool's proof of itself"),
    ("unknown", "not scored: first sight, a gap of lost events, or a path that no hook sees"),
    ("–", "not observed, which is not zero"),
    ("verdict", "+ kept pages came back, ~ they differ, = no difference seen, ? nothing can be said"),
];

/// The lines.
pub(super) fn lines(ctx: &Ctx<'_>, columns: usize) -> Lines {
    let t = ctx.theme;
    let movable = seekable(ctx.frame);
    let keys: Vec<(String, &str)> = BINDINGS
        .iter()
        .map(|b| (b.label.to_owned(), b.what))
        .zip(BINDINGS.iter().map(|b| b.replay))
        .filter(|(_, replay)| movable || !replay)
        .map(|(key, _)| key)
        .collect();
    let mut out: Lines = Vec::new();
    // Two columns of keys where they fit.
    let half = columns / 2;
    let two = half >= 44;
    let rows = if two { keys.len().div_ceil(2) } else { keys.len() };
    for i in 0..rows {
        let mut line = vec![(pad_end(&keys[i].0, 10), t.strong), (keys[i].1.to_owned(), t.plain)];
        if let Some((label, what)) = keys.get(i + rows).filter(|_| two) {
            line[1].0 = pad_end(&line[1].0, half.saturating_sub(10));
            line.push((pad_end(label, 10), t.strong));
            line.push(((*what).to_owned(), t.plain));
        }
        out.push(line);
    }
    out.push(Vec::new());
    for (word, meaning) in WORDS {
        for (i, text) in wrap(meaning, columns.saturating_sub(12), "", "").into_iter().enumerate() {
            let label = if i == 0 { word } else { "" };
            out.push(vec![(pad_end(label, 12), t.strong), (text, t.plain)]);
        }
    }
    out
}
