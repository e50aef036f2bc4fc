//! Namespaces and veth pairs.
