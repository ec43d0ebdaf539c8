//! What the running kernel is: pure functions over its BTF, symbols and settings.

pub mod btf;
pub mod cgroup;
pub mod flag_fields;
pub mod frames;
pub mod hooks;
pub mod layout;
pub mod own_rules;
pub mod size;
#[cfg(test)]
mod stored_tests;
pub mod symbols;
