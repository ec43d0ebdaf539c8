//! Rule sets from text: a preset's name and named parameters, `fg-v4,defer=oldest`.

use super::rules::*;

/// A named parameter of a rule set.
#[derive(Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it changes.
    pub help: &'static str,
    /// The values it takes.
    pub values: &'static [&'static str],
    get: fn(&Rules) -> String,
    set: fn(&mut Rules, &str) -> bool,
}

impl std::fmt::Debug for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parameter").field("name", &self.name).field("values", &self.values).finish_non_exhaustive()
    }
}

/// Why a text is no rule set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// No such preset.
    Preset(String),
    /// No such parameter.
    Parameter(String),
    /// The parameter does not take this value.
    Value(&'static Parameter, String),
}

impl PartialEq for Parameter {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Parameter {}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Preset(name) => write!(f, "no rule set {name:?}; there are {}", PRESETS.map(|p| p.name).join(", ")),
            Self::Parameter(name) => {
                let names: Vec<_> = PARAMETERS.iter().map(|p| p.name).collect();
                write!(f, "rule sets have no parameter {name:?}; there are {}", names.join(", "))
            }
            Self::Value(parameter, value) => write!(f, "{} is {}, not {value:?}", parameter.name, parameter.values.join(", ")),
        }
    }
}

impl std::error::Error for ParseError {}

macro_rules! choice {
    ($name:literal, $help:literal, $field:ident: $kind:ident) => {
        Parameter {
            name: $name,
            help: $help,
            values: $kind::NAMES,
            get: |rules| rules.$field.name().to_owned(),
            set: |rules, value| $kind::by_name(value).map(|v| rules.$field = v).is_some(),
        }
    };
}

macro_rules! switch {
    ($name:literal, $help:literal, $field:ident) => {
        Parameter {
            name: $name,
            help: $help,
            values: &["on", "off"],
            get: |rules| if rules.$field { "on" } else { "off" }.to_owned(),
            set: |rules, value| {
                rules.$field = value == "on";
                value == "on" || value == "off"
            },
        }
    };
}

macro_rules! number {
    ($name:literal, $help:literal, $($field:ident).+: $range:expr, $values:literal) => {
        Parameter {
            name: $name,
            help: $help,
            values: &[$values],
            get: |rules| rules.$($field).+.to_string(),
            set: |rules, value| match value.parse() {
                Ok(v) if ($range).contains(&v) => {
                    rules.$($field).+ = v;
                    true
                }
                _ => false,
            },
        }
    };
}

/// Every parameter. `defer` comes first because it stands for the two after it.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "defer",
        help: "generations from which a reference lifts by one, whatever its source (FG v4: unverified)",
        values: Defer::NAMES,
        get: |rules| if rules.defer == rules.defer_mapped { rules.defer.name() } else { "" }.to_owned(),
        set: |rules, value| {
            Defer::by_name(value)
                .map(|v| {
                    rules.defer = v;
                    rules.defer_mapped = v;
                })
                .is_some()
        },
    },
    choice!("defer-fd", "the same for file-descriptor accesses only", defer: Defer),
    choice!("defer-mapped", "the same for page-table accesses only", defer_mapped: Defer),
    number!("width", "LRU_REFS_WIDTH, as the kernel's flags word leaves room", width: 0..=3, "0 to 3"),
    choice!("encoding", "how the flags word counts references", encoding: Encoding),
    choice!("fault-add", "what folio_add_lru does to folios of a fault", fault_add: FaultAdd),
    choice!("placement", "where insertion places", placement: Placement),
    switch!("referenced-lifts", "PG_referenced alone lifts an insertion by one", referenced_lifts),
    choice!("walk", "what a page-table walk does", walk: Walk),
    switch!("exec-promotes", "an executable mapping counts as second access", exec_promotes),
    choice!("set-refs", "what the second reverse-map observation leaves", set_refs: SetRefs),
    switch!("overflow", "an fd access beyond the maximum count promotes", overflow_promotes),
    choice!("saturation", "folios that the scan moves on in any case", saturation: Saturation),
    choice!("protect-insert", "end of the next list for protected folios", protect_insert: End),
    choice!("after-protect", "references left after protection", after_protect: AfterProtect),
    choice!("tier-limit", "how the unprotected tiers are found (FG v2: unverified)", tier_limit: TierLimit),
    choice!("type-choice", "how the type to scan is chosen", type_choice: TypeChoice),
    choice!("recent", "which shadow entries are recent", recent: Recent),
    choice!("refault", "what a recent refault restores", refault: Refault),
    choice!("isolate", "what isolation does to references", isolate: Isolate),
    choice!("reject", "what happens to folios that reclaim gives back", reject: Reject),
    choice!("aging", "when reclaim ages with three generations", aging: Aging),
    choice!("reclaim-stop", "when memcg reclaim stops", reclaim_stop: ReclaimStop),
    choice!("scan-batch", "budget of one scan", scan_batch: ScanBatch),
    switch!("min-seq-first", "advance min_seq before isolation too", min_seq_first),
    choice!("min-seq-tie", "coupling of the types' min_seq", min_seq_tie: MinSeqTie),
    choice!("fold", "order in which inc_min_seq folds (FG's base: unverified)", fold: Fold),
    switch!("fold-counts", "folding counts as protection", fold_counts),
    choice!("dirty-scan", "dirty file folios at scan (6.18: inferred)", dirty_scan: DirtyScan),
    number!("credit-per-refault", "pages of credit per refaulted page", credit.per_refault: 0..=1024, "0 to 1024"),
    number!("credit-batch", "pages of credit that a CPU takes at once", credit.batch: 1..=4096, "1 to 4096"),
    number!("proactive", "age while the oldest generation holds less than this % of anon; 0 never", proactive_percent: 0..=100, "0 to 100"),
];

impl Rules {
    /// Reads `PRESET[,PARAMETER=VALUE…]`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default().trim();
        let mut rules = Self::by_name(name).ok_or_else(|| ParseError::Preset(name.to_owned()))?;
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (name.trim(), value.trim());
            let parameter = PARAMETERS.iter().find(|p| p.name == name).ok_or_else(|| ParseError::Parameter(name.to_owned()))?;
            if !(parameter.set)(&mut rules, value) {
                return Err(ParseError::Value(parameter, value.to_owned()));
            }
        }
        Ok(rules)
    }

    /// Text that [`Rules::parse`] reads back: the preset's name and what differs from it.
    pub fn label(&self) -> String {
        let Some(mut reached) = Self::by_name(self.name) else { return self.name.to_owned() };
        let mut label = self.name.to_owned();
        for parameter in PARAMETERS {
            let value = (parameter.get)(self);
            if !value.is_empty() && value != (parameter.get)(&reached) && (parameter.set)(&mut reached, &value) {
                label.push_str(&format!(",{}={value}", parameter.name));
            }
        }
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_parse_to_themselves() {
        for preset in PRESETS {
            assert_eq!(Rules::parse(preset.name).as_ref(), Ok(preset));
            assert_eq!(preset.label(), preset.name);
        }
    }

    #[test]
    fn the_label_reads_back() {
        for text in ["fg-v4,defer=oldest", "fg-v4,defer-fd=oldest", "7.3,width=1,fold=kept", "6.12,proactive=10", "fg-v3,overflow=off"] {
            let rules = Rules::parse(text).expect("parses");
            assert_eq!(rules.label(), text);
        }
        let v3 = Rules::parse("fg-v4,defer=oldest").expect("parses");
        assert_eq!(Rules { name: "fg-v3", ..v3 }, FG_V3);
    }

    #[test]
    fn every_parameter_takes_every_value_it_names_and_no_other() {
        for parameter in PARAMETERS {
            for value in parameter.values.iter().filter(|v| !v.contains(" to ")) {
                let rules = Rules::parse(&format!("7.3,{}={value}", parameter.name)).expect("parses");
                assert_eq!((parameter.get)(&rules), *value);
                assert_eq!(Rules::parse(&rules.label()).as_ref(), Ok(&rules));
            }
            assert!(matches!(Rules::parse(&format!("7.3,{}=nonsense", parameter.name)), Err(ParseError::Value(..))));
        }
    }

    #[test]
    fn every_field_that_presets_differ_in_has_a_parameter() {
        for (from, to) in PRESETS.iter().flat_map(|a| PRESETS.iter().map(move |b| (**a, **b))) {
            let renamed = Rules { name: from.name, ..to };
            assert_eq!(Rules::parse(&renamed.label()), Ok(renamed), "{} as a difference from {}", to.name, from.name);
        }
    }

    #[test]
    fn errors_say_what_there_is() {
        let message = |text| Rules::parse(text).expect_err("must not parse").to_string();
        assert!(message("7.4").contains("6.12, 6.18, 7.3, fg-v2"));
        assert!(message("7.3,speed=9").contains("no parameter \"speed\""));
        assert_eq!(message("fg-v4,defer=soon"), "defer is never, oldest, tail, any, not \"soon\"");
        assert_eq!(message("fg-v4,width=9"), "width is 0 to 3, not \"9\"");
    }
}
