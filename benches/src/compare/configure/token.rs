//! The token of the scenario of tokens: RS256, by a key that was thrown away, valid until the year 2100.

/// Issuer of the token.
pub(super) const ISSUER: &str = "bench";

/// Header with the token.
pub(super) const HEADERS: [(&str, &str); 1] = [("authorization", AUTHORIZATION)];

/// Value of the header.
const AUTHORIZATION: &str = "\
    Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.eyJpc3MiOiJiZW5jaCIsInN1YiI6ImNsaWVudCIsImV4cCI6NDEwMjQ0NDgwMH0.YgssL5YC9\
    5DDUmI6tKrORJKr0HKMUy8EXqPtPKHpbQSX02Vp58GA5_HnCnSwwXM_y9vB6sz1i4bzvE3x_NfaDVA6c0nwXTzA-\
    TPU7BqVxC2fckIcgTj8Res2SQLEs1WNArUSmktTDQndkABzmY3rvkGGNp7bxIGiNl_4Exzuqf0eP0OCTcDrdMC_nEdLy3Rd9nWeyMvHb-\
    Gq5z8yHdtjAcNm9CvqK_QIg_IhcbmqzpApot-\
    nEjtk0Y9Sgq-d3RSNwoyvX8skMzTxtiTLnYXUZWnMHfSPTgW9ePhWTG2KPT2Biy_z1jZcsbB9GAbR_1d3VcFOhcOhTlKB5Z8Q6blIlQ";

/// Keys of the issuer.
pub(super) const JWKS: &str = "\
    {\"keys\":[{\"kty\":\"RSA\",\"alg\":\"RS256\",\"kid\":\"k\",\"e\":\"AQAB\",\"n\":\"j4qx4JzLcufTuWcD7e-L2MKfQEtKtSOMZ-bKCv4Jt2dqi1FBLs6uQYonA_JaXm0He45InpKydvjv7O3quKNhE8vt3NenlTBe_HhzsNYKwxDJ\
    qnUCH4wZLymELmFyXPwFnXmj6P5EJKS8OpbOkjE2FfJaUDbBa0vy98lqMqJ-\
    sP8_6sbauqB-36pHYzYHP7wKTyVkwBwWmD4tqba2ZEORTQku1kDyic2t_-pmFEYln407Upkf00fjzmlL33ihg3s1sMxDf-\
    mD0aLSwkrw6B5JwXJE4LniiNuO2aBJMDmRS2a1mSgZiYM-hV1YZf8rHP_9LEP_kwoO5-SdxSPqLxDCdw\"}]}";
