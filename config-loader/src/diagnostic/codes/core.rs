//! Codes of the Kubernetes core kinds: SVC Service, EPS EndpointSlice, SEC Secret.

codes! {
    SVC001 Error "what the API requires is written";
    SVC002 Error "a port name is a DNS label";
    SVC003 Error "each of several ports has a name of its own";
    SVC004 Error "a number and a protocol belong to one port";
    SVC005 Error "a target port is a number, or a name of up to 15 letters, digits and hyphens";
    SVC006 Error "an appProtocol is a name, or a name with a domain before a slash";
    SVC007 Error "an ExternalName service names a domain";
    SVC008 Error "an address of the service is an IP address, or `None`";
    SVC009 Error "`clusterIPs` starts with `clusterIP`, and has one address per family";
    SVC010 Error "only a ClusterIP service can be headless, and an ExternalName service has no address";
    SVC011 Error "the timeout of a session affinity is from 1 to 86400 seconds";
    SVC012 Error "a node port needs type NodePort or LoadBalancer";
    SVC013 Error "the name of a service is a DNS label";
    SVC014 Error "the configuration of a session affinity needs one";
    SVC015 Error "a condition has a type, a status, a reason, a message and a time";
    SVC016 Error "a load balancer is reached by an IP address or a DNS name";
    EPS001 Error "what the API requires is written";
    EPS002 Error "an endpoint has an address";
    EPS003 Error "an address is of the slice's addressType";
    EPS004 Error "a host name is a DNS label";
    EPS005 Error "a port name is a DNS label";
    EPS006 Error "port names are unique";
    EPS007 Error "an appProtocol is a name, or a name with a domain before a slash";
    EPS008 Warning "a slice belongs to a service";
    SEC001 Error "a value of `data` is base64";
    SEC002 Error "a key has only letters, digits, `-`, `_` and `.`";
    SEC003 Error "a kubernetes.io/tls secret has `tls.crt` and `tls.key`";
    SEC004 Error "a secret has at most 1 MiB of values";
    SEC005 Warning "only secrets of the types Opaque and kubernetes.io/tls have an effect";
    SEC006 Warning "certificates and keys are written as PEM";
}
