//! Codes of what needs several resources: X.

codes! {
    X275 Warning "a route leads to a service that is known";
    X276 Warning "a route leads to a subset that a DestinationRule defines";
    X277 Warning "a route leads to a port that its service has, and says which when there are several";
    X278 Warning "a VirtualService names Gateways that exist";
    X279 Warning "a host of a VirtualService is served by a Gateway that it names";
    X280 Warning "a delegate exists, has no hosts, and is exported to the namespace of its root";
    X281 Warning "a host belongs to one VirtualService of the mesh";
    X282 Warning "a server of a Gateway does not want what an older one has";
    X283 Warning "a subset selects at least one endpoint";
    X284 Warning "a DestinationRule for many hosts is not hidden by one for fewer";
    X285 Warning "outlier detection has an endpoint that it may eject";
    X286 Warning "a hash key of one port is not lost for routes that name none";
    X287 Warning "each match of a delegate's rule fits a match of its root rule";
    X288 Warning "no rule repeats what an older VirtualService takes at the same host of a Gateway";
    X289 Warning "a failover leads to a region that has endpoints";
    X290 Warning "an entry of distribute sends traffic to localities that have endpoints";
    X291 Note "a hash key of the only port counts for routes that name none";
    X292 Warning "port-level settings are for a port that the service has";
    X293 Warning "a GlobalTrafficPolicy is for a service that some resource describes";
    X294 Warning "a cluster that a GlobalTrafficPolicy names serves the service";
    X295 Warning "the weights of a GlobalTrafficPolicy leave some cluster its traffic";
    X296 Warning "FailoverIneffective: outlier detection may eject all endpoints of a cluster that another one takes over from";
    X297 Warning "a ServiceImport has endpoints";
    X298 Warning "ExactNotImportable: a rule of a ServiceExport can be reached through an import";
    X299 Warning "Valid: a ServiceExport is of a Service with endpoints of its own, and of ports that it has";
    X300 Warning "Valid: a path and its type belong to one ServiceExport of a gateway";
    X301 Warning "HostShadowed: a host of a ServiceEntry or an externalService is not that of a service of a cluster";
    X302 Warning "an address (`ips`, `addresses`) belongs to one service";
    X303 Warning "a route of a Gateway leads to a service whose endpoints are known without its clients";
    X304 Warning "a Destination that other clusters reach through a gateway has one";
    X305 Warning "a traffic shift is known to be for its Destination, which no VirtualService routes";
    X306 Warning "a federated host name belongs to one Destination";
    X307 Warning "PathNotApplicable: the path of an import's endpoint is for a port that has paths";
    X308 Warning "a bare cluster name is that of one known cluster";
    X309 Warning "a cluster that a MultiClusterService names is known";
    X310 Warning "a port that a MultiClusterService exposes is one of its service";
    X311 Warning "a backup of a FailOver is not the local cluster";
    X312 Warning "labels that tell clusters apart order no endpoints of a service that a GlobalTrafficPolicy shares among clusters";
    X315 Warning "a host outside of clusters is described by ServiceEntries of one namespace, or by one Destination";
    X316 Warning "a DestinationRule is for a host that some resource describes";
    X317 Warning "a port of a host has one protocol in all ServiceEntries of a namespace";
    X330 Warning "a workload has one PeerAuthentication of each level";
    X331 Warning "a port of portLevelMtls is a target port of a service of the workload";
    X332 Warning "a DestinationRule sends no plain text to workloads that require mutual TLS";
    X333 Warning "a PeerAuthentication with a selector is not in the root namespace";
}
