//! What each rule set thinks of the kernel's evictions, and of what came back (design.md).

use observer_common::{SWAP_DEV, task};

use crate::{
    model::{Add, FolioState, ShadowLayout, Token, Window},
    session::{
        Session,
        ghosts::Memory,
        rule_set::Engine,
        sampling::{By, Of, outlives},
        step::{Moment, OWN},
    },
    stream::{
        event::{FolioEvent, Identity},
        header::{Lru, OwnRules},
    },
};

/// Refaulted folios whose swap entry is not known yet; a fault has one.
const MAX_ARRIVALS: usize = 1 << 16;

/// How a folio came from swap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    in_fault: bool,
    memalloc: bool,
    window: Option<Window>,
}

/// The identity that a folio has before and after its absence: a swap entry, or the page of a file.
fn survives(event: &FolioEvent, held: &Identity) -> Option<Identity> {
    match event.identity {
        Some(identity) if identity.dev == SWAP_DEV => Some(identity),
        _ => Some(*held).filter(|held| held.ino != 0),
    }
}

impl Session {
    /// Which swap entry fills a folio, where its refault could not tell: the verdict on that eviction is made up for.
    pub(super) fn on_swap_read(&mut self, event: &FolioEvent) {
        let (Some(identity), Some(slot)) = (event.identity, self.world.slot(event.folio)) else { return };
        // Of a folio that is read before it is refaulted, the refault will tell.
        if !self.arrivals.contains_key(&slot) {
            return;
        }
        let Some(memories) = self.ghosts.take(&identity) else { return };
        let Some(arrival) = self.arrivals.remove(&slot) else { return };
        let folio = *self.world.folio(slot);
        let pages = u64::from(folio.pages());
        let traits = self.decoder.read(event.flags, folio.pages()).traits;
        for set in OWN..self.rules.len() {
            let Some(memory) = memories.get(set).copied() else { continue };
            // It came without what its eviction remembered: that is restored, and then it arrives once more. The kernel's own
            // shadow entry was there in time, and its flags have been followed since.
            let (rules, mut state) = (&self.rules[set], FolioState::default());
            if set != OWN && !rules.state(slot).on_list {
                let add = Add { in_fault: arrival.in_fault, memalloc: arrival.memalloc, credited: false };
                rules.refault(&mut state, memory.token, false, arrival.window.as_ref(), arrival.in_fault);
                rules.add(&mut state, &traits, add);
                self.replace(set, slot, state);
            }
            self.judge_refault(set, &memory, folio.file, pages);
        }
    }

    /// The verdict on an eviction falls due when its folio comes back; whether it is avoidable.
    fn judge_refault(&mut self, set: usize, memory: &Memory, file: u32, pages: u64) -> bool {
        if !memory.known {
            return false;
        }
        let rules = &mut self.rules[set];
        rules.refaults.judged += pages;
        if memory.would_keep {
            rules.refaults.avoidable += pages;
            rules.files[file as usize].avoidable += pages;
        }
        memory.would_keep
    }

    pub(super) fn on_refault(&mut self, moment: &Moment, event: &FolioEvent) {
        self.score(moment);
        let folio = *self.world.folio(moment.slot);
        let file = moment.seen.traits.file;
        let in_fault = event.aux & task::IN_LRU_FAULT != 0;
        let entry = self.shadow_layout().and_then(|layout| layout.decode(event.shadow, file));
        let memories = survives(event, &folio.identity).and_then(|identity| self.ghosts.take(&identity));
        let lruvec = self.world.lruvec(folio.lruvec);
        // Another cgroup or node: the kernel counts nothing and restores nothing (spec 7.3).
        let counted =
            entry.is_none_or(|entry| lruvec.memcg_id == 0 || (entry.memcg_id == lruvec.memcg_id && entry.node == u32::from(lruvec.node)));
        if !counted {
            return;
        }
        let by_swap = event.identity.is_some_and(|identity| identity.dev == SWAP_DEV);
        if !file && !by_swap {
            let memalloc = event.aux & task::MEMALLOC != 0;
            if self.arrivals.len() < MAX_ARRIVALS || self.arrivals.contains_key(&moment.slot) {
                self.arrivals.insert(moment.slot, Arrival { in_fault, memalloc, window: moment.window });
            } else {
                self.world.refused += 1;
            }
        }
        let pages = u64::from(folio.pages());
        self.world.lruvec_mut(folio.lruvec).refaults += pages;
        self.world.files.file_mut(folio.file).refaults += pages;
        self.tell_refault(&folio);
        self.sample(moment.slot, Of::Refaulted, pages);
        // Estimates are of what any sample could tell, whatever the rate was when.
        let lasts = outlives(&folio.identity, folio.is_file);
        self.sample(moment.slot, Of::Traced, if lasts { pages } else { 0 });
        if self.may_return(&folio) {
            self.sampling.traced += pages;
        } else {
            self.world.files.file_mut(folio.file).untraced += pages;
        }
        for set in 0..self.rules.len() {
            let memory = memories.as_ref().and_then(|memories| memories.get(set)).copied();
            let token: Option<Token> = if set == OWN {
                entry.map(|entry| entry.token).or(memory.map(|memory| memory.token))
            } else {
                memory.map(|memory| memory.token)
            };
            if let Some(token) = token {
                self.step(set, moment, move |rules, state, moment| {
                    rules.refault(state, token, file, moment.window.as_ref(), in_fault);
                    0
                });
            }
            self.rules[set].refaults.actual += pages;
            if memory.is_some_and(|memory| self.judge_refault(set, &memory, folio.file, pages)) {
                self.sample_by(moment.slot, set, By::Avoidable, if lasts { pages } else { 0 });
            }
        }
    }

    fn shadow_layout(&self) -> Option<ShadowLayout> {
        // The swap table of 7.3 takes five high bits of an anon token (spec 7.1).
        let anon_cut = if matches!(self.header.own_rules, OwnRules::V7_3 | OwnRules::FgV3) { 5 } else { 0 };
        self.header.layout.nodes_shift.map(|nodes_shift| ShadowLayout { nodes_shift, anon_cut })
    }

    /// Flags at eviction: verdicts, one more score, and the end of this residency.
    pub(super) fn on_evict(&mut self, moment: &Moment, event: &FolioEvent) {
        let folio = *self.world.folio(moment.slot);
        let file = moment.seen.traits.file;
        let pages = u64::from(folio.pages());
        let mut memories = Vec::with_capacity(self.rules.len());
        for set in 0..self.rules.len() {
            self.step(set, moment, |_, _, _| 0);
            let rules = &mut self.rules[set];
            let mut state = rules.state(moment.slot);
            // Without a kernel clock generations stand still, and a verdict would only say where a folio began.
            let clocked = self.header.lru == Lru::Mglru || matches!(rules.engine, Engine::Classical);
            let oldest = rules.is_oldest(&state, file, moment.window.as_ref()).filter(|_| moment.known && clocked);
            if let Some(oldest) = oldest {
                rules.evictions.scored += 1;
                rules.evictions.agree += u64::from(oldest);
                rules.evictions.would_keep += u64::from(!oldest);
                rules.files[folio.file as usize].would_keep += u64::from(!oldest);
            }
            rules.isolate(&mut state);
            memories.push(Memory {
                token: rules.token(&state, file, moment.window.as_ref()),
                would_keep: oldest == Some(false),
                known: oldest.is_some(),
            });
            self.replace(set, moment.slot, state);
            if let Some(oldest) = oldest {
                self.sample_by(moment.slot, set, By::Judged, 1);
                self.sample_by(moment.slot, set, By::Keeps, u64::from(!oldest));
            }
        }
        self.score(moment);
        self.sample(moment.slot, Of::Evicted, pages);
        self.tell_eviction(&folio);
        self.world.lruvec_mut(folio.lruvec).evictions += pages;
        self.world.files.file_mut(folio.file).evictions += pages;
        if let Some(identity) = survives(event, &folio.identity).filter(|_| self.may_return(&folio)) {
            self.ghosts.put(identity, memories);
        }
        self.end_residency(moment.slot);
    }
}
