//! The rows of hooks, and of programs that are run rather than attached.

use serde::Serialize;

use crate::stream::header::{Hook, Via};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What was wanted and what became of it.
    #[serde(flatten)]
    pub hook: Hook,
    /// What would open it; empty where it was reached.
    pub change: &'static str,
}

impl From<Hook> for Row {
    fn from(hook: Hook) -> Self {
        let change = if hook.via == Via::None { change(&hook.why) } else { "" };
        Self { hook, change }
    }
}

/// What would open a hook that was not reached.
fn change(why: &str) -> &'static str {
    if why.contains("not permitted") || why.contains("524") || why.contains("not supported") {
        "a kernel that lets functions be hooked (CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y, no lockdown of tracing)"
    } else if why.contains("inlined or absent") {
        "nothing here: this kernel has no such function to hook (another version or compiler may)"
    } else if why.contains("takes other arguments") {
        "an observer that knows the function as this kernel has it"
    } else if why.contains("no tracepoint") {
        "a kernel with CONFIG_TRACEPOINTS=y and this tracepoint"
    } else if why.contains("kallsyms") || why.contains("vmemmap_base") {
        "a kernel with CONFIG_KALLSYMS_ALL=y, its addresses shown (root, sysctl kernel.kptr_restrict=1)"
    } else if why.contains("refused the program") {
        "a kernel with bpf_loop (5.17 or later) that lets programs read its memory"
    } else {
        "see the reason"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_says_what_would_open_it() {
        for (why, wanted) in [
            ("folio_add_lru: Operation not permitted (os error 1)", "CONFIG_DYNAMIC_FTRACE"),
            ("inc_max_seq is inlined or absent", "nothing here"),
            ("folio_add_lru takes other arguments here than those known: (page)", "an observer that knows"),
            ("this kernel has no tracepoint mm_lru_insertion", "CONFIG_TRACEPOINTS"),
            ("/proc/kallsyms shows no address of pff: it hides them, or this kernel has no such table", "CONFIG_KALLSYMS_ALL"),
            ("the kernel refused the program sweep: unknown func bpf_loop#181", "bpf_loop"),
        ] {
            let hook = Hook { name: "x".into(), via: Via::None, target: String::new(), why: why.into(), without: "sight".into() };
            assert!(change(why).contains(wanted), "{why}");
            // JSON has the same as text: a flat row with the advice in it.
            let json = serde_json::to_value(Row::from(hook.clone())).unwrap();
            assert_eq!((&json["name"], &json["without"], &json["change"]), (&"x".into(), &"sight".into(), &change(why).into()));
            assert_eq!(Row::from(Hook { via: Via::Fentry, ..hook }).change, "");
        }
    }
}
