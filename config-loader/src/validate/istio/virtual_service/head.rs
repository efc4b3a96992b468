//! Top-level fields of a VirtualService that its rules depend on.

use super::hosts::Covering;

/// Top-level fields of a VirtualService that its rules depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    /// Whether it is a delegate, whose rules are used only by other VirtualServices.
    pub(super) delegate: bool,
    /// Whether it applies to gateways only.
    pub(super) gateways_only: bool,
    /// Whether it applies to a gateway, and possibly also to the mesh.
    pub(super) at_gateway: bool,
    /// Hosts, in lower case.
    pub(super) hosts: &'a [String],
    /// Index of the hosts, to find the ones that cover an SNI.
    pub(super) covering: &'a Covering<'a>,
}
