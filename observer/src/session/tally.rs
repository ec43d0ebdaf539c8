//! Scores of one-step predictions, by what told and by type.

use crate::{
    session::frame::{Fidelity, FidelityBy},
    stream::event::Kind,
};

/// Kinds of events told apart; their wire values.
const KINDS: usize = 32;

/// The scores.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    by: [[Fidelity; 2]; KINDS],
}

impl Tally {
    /// An event of a folio: whether the prediction agreed, `None` where none stood.
    pub(crate) fn count(&mut self, kind: Kind, file: bool, verdict: Option<bool>) {
        let fidelity = &mut self.by[kind as usize % KINDS][usize::from(file)];
        match verdict {
            Some(agrees) => {
                fidelity.scored += 1;
                fidelity.agree += u64::from(agrees);
            }
            None => fidelity.unknown += 1,
        }
    }

    /// All together.
    pub(crate) fn total(&self) -> Fidelity {
        self.by.iter().flatten().fold(Fidelity::default(), Fidelity::plus)
    }

    /// Anon, file.
    pub(crate) fn by_type(&self) -> [Fidelity; 2] {
        [0, 1].map(|file| self.by.iter().map(|types| &types[file]).fold(Fidelity::default(), Fidelity::plus))
    }

    /// Kind by kind, those that came.
    pub(crate) fn rows(&self) -> Vec<FidelityBy> {
        let kinds = self.by.iter().enumerate().filter_map(|(wire, types)| Some((observer_common::kind(u8::try_from(wire).ok()?)?, types)));
        let rows = kinds.flat_map(|(kind, types)| [false, true].map(|file| FidelityBy { kind, file, fidelity: types[usize::from(file)] }));
        rows.filter(|row| row.fidelity != Fidelity::default()).collect()
    }
}
