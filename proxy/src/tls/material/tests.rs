use super::*;

#[test]
fn dates_are_formatted_for_readers() {
    assert_eq!(date(0), "1970-01-01T00:00:00Z");
    assert_eq!(date(1_704_067_199), "2023-12-31T23:59:59Z");
}
