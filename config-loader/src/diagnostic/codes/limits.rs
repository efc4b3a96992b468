//! Codes of limits: RL. Numbers from 101 on are findings about what a limit does.

codes! {
    RL001 Error "a target of a BackendTrafficPolicy has a name, and a kind that limits apply to";
    RL002 Error "a BackendTrafficPolicy has either targetRef or targetRefs, and a target";
    RL003 Error "a limit has a number of requests and a unit";
    RL004 Error "a condition of clientSelectors is not empty";
    RL005 Error "a header or query parameter has a name, and a value unless it is Distinct";
    RL006 Error "a sourceCIDR is a block of addresses, once in a rule";
    RL007 Error "a path begins with `/` and has no query";
    RL008 Error "limits stay within the sizes that the API has";
    RL009 Error "requestBuffer has a limit, a number of bytes";
    RL010 Error "a cost is a number from 0";
    RL011 Error "a regex is of the RE2 dialect, not empty, and has at most 1024 bytes";
    RL012 Error "a method is a token";
    RL101 Warning "a target is of a kind that is read";
    RL102 Warning "a target exists, and so does its rule";
    RL103 Warning "a target has one BackendTrafficPolicy";
    RL104 Warning "a local limit has a unit of at most a day, since a restart of the proxy refills it";
    RL105 Warning "a limit is for a rule that forwards";
    RL106 Warning "clients cannot choose the value that they are told apart by";
    RL107 Warning "a limit on bodies is for requests that are not gRPC";
    RL108 Warning "a request costs no more than its limit";
    RL109 Warning "a condition is one that requests can meet: paths are normalized, and methods have upper case";
}
