//! Codes of certificates and keys (TLS), in files and Secrets that a Gateway or a DestinationRule names.

codes! {
    TLS001 Warning "a certificate, key or secret that is named is there";
    TLS002 Error "a certificate is written as PEM and can be read";
    TLS003 Error "a key is written as PEM, is one key, without a passphrase, and of a kind that is supported";
    TLS004 Error "a key belongs to its certificate";
    TLS005 Error "a certificate has not expired";
    TLS006 Error "a certificate is valid already";
    TLS007 Error "where clients are verified there is a CA to verify them with";
    TLS008 Error "a list of revoked certificates can be read";
    TLS009 Warning "a list of revoked certificates is renewed in time";
    TLS010 Warning "a certificate is one that clients trust";
    TLS011 Warning "a certificate is for the hosts of its server";
    TLS012 Warning "a curve is one that is offered";
    TLS013 Error "a credential is a secret of the proxy's own namespace";
    TLS014 Error "at a sidecar, a rule with a credential selects the workload";
    TLS015 Error "the certificate of a workload names its trust domain, its namespace and its service account";
    TLS016 Error "the directory of the mesh identity has the files of one identity";
    TLS017 Error "the certificate of a workload is signed by a CA of its trust domain";
}
