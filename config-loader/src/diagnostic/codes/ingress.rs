//! Codes of Ingresses: IG. Numbers from 101 on are rules of the API, which reject an object.

codes! {
    IG001 Note "an Ingress has a class that is served";
    IG003 Warning "an Ingress has its class in `ingressClassName` or in the annotation, not in both";
    IG004 Warning "an IngressClass has no parameters";
    IG010 Warning "a host has a path once, or in canary Ingresses beside the stable one";
    IG011 Warning "the Service of a backend exists, and has the port";
    IG012 Warning "a backend is a Service";
    IG013 Warning "a host belongs to the namespace that has it first, with `--ingress-host-owner first`";
    IG014 Warning "a canary Ingress has a stable Ingress with its host and path in its namespace";
    IG020 Warning "the Secret with the certificate of hosts exists";
    IG021 Warning "TLS without a Secret has a default certificate";
    IG030 Note "the certificate of a backend is verified";
    IG031 Note "session affinity moves no sessions when endpoints are added";
    IG032 Note "endpoints are chosen by their latency";
    IG033 Warning "Ingresses agree on the settings of a Service";
    IG040 Warning "an annotation of ingress-nginx is known";
    IG041 Warning "an annotation of ingress-nginx that restricts or redirects requests is followed";
    IG042 Warning "an annotation of ingress-nginx has an effect";
    IG043 Warning "an annotation of ingress-nginx has a value that can be used";
    IG050 Note "a path ends without `/`, or ingress-nginx redirects requests without it";
    IG051 Warning "an expression is written with the path type `ImplementationSpecific`";
    IG052 Note "paths of a host are compared as ingress-nginx compares them";
    IG101 Error "what the API requires is written";
    IG102 Error "a host and a path have the form that the API demands";
    IG103 Error "of fields that exclude each other, one is written";
}
