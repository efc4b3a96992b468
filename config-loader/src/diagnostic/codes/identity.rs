//! Codes of the sources of a workload's identity (ID), which the flag `--identity` names.

codes! {
    ID001 Warning "the source of the identity answers, and its files are there";
    ID002 Error "the source of the identity accepts the token of the workload";
    ID003 Error "the certificate of the workload is renewed before it expires";
    ID004 Warning "a message of the SPIFFE Workload API is complete";
    ID005 Error "the SPIFFE Workload API has an identity for the workload";
}
