//! Codes of the networking.istio.io kinds. The numbers follow one catalogue: VS021.., DR123.., GW187.., SC222..,
//! SE249.., WE270.., and X275.. for what needs several resources.

codes! {}
