//! Codes of the multi-cluster kinds: GTP GlobalTrafficPolicy, SI ServiceImport, SX ServiceExport, MCS
//! MultiClusterService, GD Destination.

codes! {
    GTP001 Error "a target has a cluster key: region/zone/group/cluster";
    GTP002 Error "a cluster is named once";
    GTP003 Error "Locality takes at most one target";
    GTP004 Error "FailOver takes at least one target";
    GTP005 Error "a weight is 0 or more";
    GTP006 Error "the sum of all weights is at most 4294967295";
    GTP007 Warning "the target and the weight of a Locality policy have no effect";
    SI001 Error "what the API requires is written";
    SI002 Error "a port name is a DNS label";
    SI003 Error "each of several ports has a name of its own";
    SI004 Error "a number and a protocol belong to one port";
    SI005 Error "an endpoint has a cluster key: region/zone/group/cluster";
    SI006 Error "a target has a host or an ip";
    SI007 Error "the host of a target is a DNS name or an IP address";
    SI008 Error "an address is an IP address";
    SI009 Error "the path of a target starts with a slash";
    SI010 Error "an imported service has at most one address";
    SI011 Error "the timeout of a session affinity is from 1 to 86400 seconds";
    SI012 Warning "addresses and session affinity have no effect on a headless service";
    SI013 Error "a service account is `*` or the name of an object";
    SI014 Error "a source cluster is named once, by a DNS label";
    SX001 Error "what the API requires is written";
    SX002 Error "a path starts with a slash";
    SX003 Error "a path and its type belong to one rule";
    SX004 Error "the regular expression of a rewrite is one of the RE2 dialect";
    SX005 Error "a target cluster is a cluster key: region/zone/group/cluster";
    SX006 Warning "a rewrite has both `from` and `to`";
    SX007 Warning "a rewrite only uses groups that its regular expression has";
    SX008 Error "a service account is `*` or the name of an object";
    SX009 Error "a condition has a type, a status, a reason, a message and a time";
    MCS001 Error "the name is a DNS-1035 label, as that of a Service";
    MCS002 Error "what the API requires is written";
    MCS003 Error "there is one type of exposure";
    MCS004 Error "a port name is a DNS label";
    MCS005 Error "a port is exposed once";
    MCS006 Error "a cluster name is a DNS label of at most 48 characters";
    MCS007 Warning "a deprecated field has a successor";
    MCS008 Error "a condition has a type, a status, a reason, a message and a time";
    MCS009 Error "a load balancer is reached by an IP address or a DNS name";
    GD001 Error "exactly one of `kubeService` and `externalService` is set";
    GD002 Warning "a destination is a `kubeService` or an `externalService`";
    GD003 Error "what is needed for routing is written";
    GD004 Error "at most one of `targetPortName` and `targetPortNumber` is set";
    GD005 Error "an address is an IP address";
    GD006 Error "an address is either a DNS name or an IP address";
    GD007 Error "an external service has hosts or addresses";
    GD008 Error "a host is a domain name, exact or with a leading `*.`";
    GD009 Error "a port name and a port number belong to one port";
    GD010 Warning "an endpoint maps ports that its service has";
    GD011 Error "the weights of a traffic shift sum up to 100";
    GD012 Error "a destination of a traffic shift is of exactly one type";
    GD013 Warning "only traffic shifts between services of clusters are followed";
    GD014 Error "a host name is a domain name";
    GD015 Error "a port of a service with several ports is named";
}
