//! Codes of the kinds of gateway.networking.k8s.io: GA. Numbers from 101 on are rules of the API, which reject an object.

codes! {
    GA008 Warning "UDP is not forwarded, so that UDPRoutes have no effect";
    GA009 Warning "a kind of the API group is one that is read";
    GA010 Warning "a GatewayClass and a Gateway have no parameters";
    GA012 Note "nothing is created for a Gateway, so that labels and annotations for it have no effect";
    GA031 Warning "an option of a listener's TLS is known";
    GA035 Warning "clients with a wrong certificate are not served";
    GA041 Warning "a filter is supported, and so is session persistence";
    GA061 Warning "a BackendTLSPolicy has no options";
    GA101 Error "what the API requires is written";
    GA102 Error "a list has as many entries as the API allows";
    GA103 Error "a reference has a well-formed group, kind, namespace and name";
    GA104 Error "a host is a lower-case DNS name, of which only the first label may be `*`";
    GA105 Error "names of listeners are unique";
    GA106 Error "listeners differ in port, protocol or host";
    GA107 Error "a listener has TLS settings that its protocol takes";
    GA108 Error "a listener that terminates TLS has certificates or options";
    GA109 Error "a listener for TCP or UDP has no host";
    GA110 Error "an address of a Gateway is an IP address or a host, and is there once";
    GA111 Error "each port has its TLS settings once";
    GA112 Error "the parent of a ListenerSet is a Gateway";
    GA113 Error "a controller is a domain and a path";
    GA114 Error "the controller of a GatewayClass is immutable";
    GA115 Error "references to the same parent differ in section or port";
    GA116 Error "a reference to a Service has a port";
    GA117 Error "a weight is from 0 to 1000000";
    GA118 Error "a route has at most 128 matches";
    GA119 Error "a path is absolute and normalized";
    GA120 Error "a regex is of the RE2 dialect, not empty, and has at most 1024 bytes";
    GA121 Error "a header or query parameter has a valid name, once in its list, and a header a valid value";
    GA122 Error "a rule with a redirect has no backends";
    GA123 Error "a redirect and a rewrite exclude each other";
    GA124 Error "a filter of a type is there once";
    GA125 Error "a value with a type has the field of this type, and no other";
    GA126 Error "a prefix is replaced in a rule with one match, of type PathPrefix";
    GA127 Error "a mirror has a percentage or a fraction, of at most all requests";
    GA128 Error "an attempt has no longer timeout than its request";
    GA129 Error "retries are of statuses from 400 to 599, each once, and there is at least one attempt";
    GA130 Error "a CORS policy has well-formed origins, `*` only alone, and a maxAge of at least a second";
    GA131 Error "a duration has up to four numbers with units, without fractions";
    GA132 Error "a match of a gRPC method has a well-formed service or method";
    GA133 Error "the targets of a BackendTLSPolicy are distinct";
    GA134 Error "a BackendTLSPolicy has caCertificateRefs or wellKnownCACertificates";
    GA135 Error "a subject alternative name has the value of its type";
    GA136 Error "the status of a redirect is 301, 302, 303, 307 or 308";
}
