//! Codes of `strait imports`, which compares several clusters: IM.

codes! {
    IM001 Warning "Conflict: clusters that export a service say the same of it: type, ports, service account";
    IM002 Error "the gateway of a cluster that exports is known";
    IM003 Warning "an export that is imported is not rejected by its status: Valid is not False, Conflict not True unless it is merged";
    IM004 Error "a cluster that is imported from has resources";
}
