//! The points in which rule sets differ, each with its values (spec 14 and section 10).

/// Defines a knob: an enum whose values have names, for the command line and for reports.
macro_rules! knob {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Names of all values.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// Name of this value.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The value of that name.
            pub fn by_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

knob! {
    /// How the flags word holds the reference count (spec 1.4).
    Encoding {
        /// `refs = mask + workingset`; `PG_referenced` is not counted (6.1, 6.12).
        MaskWorkingset = "mask+workingset",
        /// `refs = referenced ? mask + 1 : 0`; `PG_workingset` is a state of its own (6.14 and later).
        ReferencedMask = "referenced+mask",
        /// One count, `referenced + 2 workingset + 4 mask` (FG).
        Count = "count",
    }
}

knob! {
    /// What `folio_add_lru` does to the flags of a folio that a fault brought in (spec 2.1).
    FaultAdd {
        /// Sets `PG_active` (up to 7.1).
        Activate = "activate",
        /// Sets `PG_active` if workingset, else marks accessed once (7.2, 7.3).
        Touch = "touch",
        /// Nothing; faults count at refault time (FG).
        Nothing = "nothing",
        /// Sets `PG_active` for swap-backed folios only (spec D4).
        ActivateSwapbacked = "activate-swapbacked",
        /// As `touch`, but a file folio is activated while the lruvec has refault credit (spec D2).
        Credit = "credit",
    }
}

knob! {
    /// Where insertion places a folio (spec 2.2).
    Placement {
        /// Active to the youngest, anon to `min_seq + 1`, the rest to `min_seq` (6.1 before its backport).
        Early = "early",
        /// Active to the youngest, file by how many generations there are (6.1.y, 6.12).
        Window = "window",
        /// By distance from `max_seq`: `PG_active` alone is one generation down (6.14 and later).
        Distance = "distance",
        /// As `distance`, but active file folios that are no workingset go one generation further down (spec D3).
        DistanceFileOlder = "distance-file-older",
    }
}

knob! {
    /// What a page-table walk does to a folio with a young PTE (spec 3.2, W).
    Walk {
        /// To the youngest generation at once (6.1, 6.12).
        Youngest = "youngest",
        /// The first observation marks, the second promotes (6.14 and later).
        Second = "second",
        /// Counts like any reference; the second one promotes (FG).
        Count = "count",
    }
}

knob! {
    /// What the second observation through the reverse map leaves in the flags (spec 3.2, `lru_gen_set_refs`).
    SetRefs {
        /// Always workingset (6.14 to 7.1).
        Workingset = "workingset",
        /// Counts one access; only a folio with more than one reference becomes workingset (7.2, 7.3).
        CountFirst = "count-first",
    }
}

knob! {
    /// From which generations a reference lifts a folio by one (FG; spec 3.1).
    Defer {
        /// From none.
        Never = "never",
        /// From `min_seq` only (v3).
        Oldest = "oldest",
        /// From any generation older than the two youngest (v4 as its letter suggests; unverified).
        Tail = "tail",
        /// From any but the youngest (page tables in v2).
        Any = "any",
    }
}

knob! {
    /// Which folios the scan moves on whatever the controller says (spec 1.4, 6.3).
    Saturation {
        /// `refs == 2^W`, counted as protected (6.1, 6.12).
        Refs = "refs",
        /// `refs + workingset == 2^W + 1`, not counted (6.14 and later).
        RefsWorkingset = "refs+workingset",
        /// None (FG).
        Never = "never",
    }
}

knob! {
    /// What `folio_inc_gen` leaves of the references (spec 5.7).
    AfterProtect {
        /// Nothing (6.1, 6.12).
        Clear = "clear",
        /// Workingset only (6.14 and later).
        KeepWorkingset = "keep-workingset",
        /// At most two references (FG).
        CapTwo = "cap-two",
    }
}

knob! {
    /// End of a list.
    End {
        /// Young end.
        Head = "head",
        /// End that reclaim scans.
        Tail = "tail",
    }
}

knob! {
    /// How the highest unprotected tier is found (spec 4.3).
    TierLimit {
        /// Tier 0 against each, 1:2; tier 0 of the *other* type after a choice of type (6.1, 6.12).
        OneTwo = "1:2",
        /// Tier 0 against each, 2:3 (6.14 to 7.3).
        TwoThree = "2:3",
        /// All lower tiers together against each, 1:2 (FG v3).
        Cumulative = "cumulative",
    }
}

knob! {
    /// How the type to scan is chosen (spec 4.4).
    TypeChoice {
        /// The type whose `min_seq` is behind, then tier 0 of both (6.1, 6.12).
        BehindThenTierZero = "behind",
        /// All tiers of both (6.14 and later).
        AllTiers = "all-tiers",
    }
}

knob! {
    /// Which shadow entries are recent (spec 7.2).
    Recent {
        /// Evicted from the generation that still is the oldest (6.1, 6.12).
        SameMinSeq = "same-min-seq",
        /// Evicted fewer than four generations ago (6.14 and later).
        WithinWindow = "within-window",
    }
}

knob! {
    /// What a recent refault restores (spec 7.3).
    Refault {
        /// Workingset and a full mask if in a fault or often referenced (6.1, 6.12).
        WorkingsetIfHot = "workingset-if-hot",
        /// Workingset if it was, else the mask; ACTIVATE counted for any fault (6.14 to 7.1).
        MaskActivateFault = "mask-activate-fault",
        /// Workingset if it was, else the mask; ACTIVATE counted for workingset faults (7.2, 7.3).
        MaskActivateWorkingset = "mask-activate-workingset",
        /// The count, at most three; active if in a fault (FG).
        Count = "count",
    }
}

knob! {
    /// What isolation does to the references (spec 6.4).
    Isolate {
        /// Drops all unless referenced, then drops `PG_referenced` (6.1, 6.12).
        DropReferenced = "drop-referenced",
        /// Drops a mask that is not valid (6.14 and later).
        DropStaleMask = "drop-stale-mask",
        /// Nothing (FG).
        Nothing = "nothing",
    }
}

knob! {
    /// What happens to a folio that reclaim gives back (spec 6.6).
    Reject {
        /// To the youngest generation without references (6.1, 6.12).
        Youngest = "youngest",
        /// Active and without references if it would land in the oldest generation (6.14 and later).
        LiftOldest = "lift-oldest",
        /// At most two references each, then active if it would land in the oldest generation (FG).
        CapAndLift = "cap-and-lift",
    }
}

knob! {
    /// When reclaim ages (spec 5.1).
    Aging {
        /// With three generations by their sizes; never at the first priority (6.1, 6.12).
        Sizes = "sizes",
        /// With three generations; never at the first priority, which scans nothing when only two are left (6.14 to 7.1).
        RaisedPriority = "raised-priority",
        /// With three generations at raised priority, with two at any (7.2, 7.3).
        Priority = "priority",
    }
}

knob! {
    /// When reclaim for a memory cgroup's limit stops (spec 6.1).
    ReclaimStop {
        /// When the scan budget is spent, however much was reclaimed (6.1 to 7.1).
        Budget = "budget",
        /// After the batch that reaches the goal (7.2, 7.3).
        Goal = "goal",
    }
}

knob! {
    /// Budget of one scan in folios (spec 6.2).
    ScanBatch {
        /// 4096 whatever is left (6.1, 6.12).
        Fixed = "fixed",
        /// What is left, at most 4096 (6.14 to 7.1).
        Remaining = "remaining",
        /// What is left, at most 64 (7.3).
        Small = "small",
    }
}

knob! {
    /// How `try_to_inc_min_seq` keeps the types together (spec 5.6).
    MinSeqTie {
        /// Anon never ahead of file (6.1, 6.12).
        AnonBehindFile = "anon-behind-file",
        /// Neither more than one step ahead of the other's two oldest (6.14 and later).
        Diverge = "diverge",
    }
}

knob! {
    /// In which order `inc_min_seq` folds the oldest generation into the next (spec 5.4, T12).
    Fold {
        /// One by one from the tail to the tail: order reversed.
        Reversed = "reversed",
        /// In runs: order kept (FG's base, as far as its hunks show; unverified).
        Kept = "kept",
    }
}

knob! {
    /// Whether the scan moves dirty file folios and those under writeback on (spec 6.3 step 5).
    DirtyScan {
        /// They are isolated like others.
        Isolate = "isolate",
        /// Next generation, `PG_reclaim` set (inferred for 6.18).
        NextGeneration = "next-generation",
    }
}
