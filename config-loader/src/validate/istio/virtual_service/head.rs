//! What the rules of a VirtualService must know of its head.

use super::hosts::Covering;

/// What the rules of a VirtualService must know of its head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    /// Whether it only lends its rules.
    pub(super) delegate: bool,
    /// Whether it is for gateways, and for them only.
    pub(super) gateways_only: bool,
    /// Whether it is for a gateway, and maybe for the mesh, too.
    pub(super) at_gateway: bool,
    /// Its hosts, in lower case.
    pub(super) hosts: &'a [String],
    /// The same, to look up what they cover.
    pub(super) covering: &'a Covering<'a>,
}
