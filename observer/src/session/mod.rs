//! From events to the picture: who is who, what the kernel did, what each rule set would have done, and how they compare.

pub mod frame;
