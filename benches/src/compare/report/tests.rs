use super::*;

fn cells(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

#[test]
fn tables_are_aligned_and_cells_stay_in_their_column() {
    let mut out = String::new();
    table(
        &mut out,
        &cells(&["proxy", "us"]),
        &[cells(&["a|b\nc", "17.5"]), cells(&["nginx", "8"])],
    );
    let expected = "\
| proxy  | us   |
| ------ | ---: |
| a\\|b c | 17.5 |
| nginx  | 8    |
";
    assert_eq!(out, expected);
}

#[test]
fn report_has_environment_sections_and_notes() {
    let mut report = Report::new(vec![("CPU".to_owned(), "fast".to_owned())]);
    report.sections.push(Section {
        title: "Small".to_owned(),
        text: "How.".to_owned(),
        columns: cells(&["proxy", "us"]),
        rows: vec![cells(&["nginx", "17.0"])],
    });
    report.notes.push("wrk is\nmissing".to_owned());
    let expected = "\
## Environment

| what | value |
| ---- | ----: |
| CPU  | fast  |

## Small

How.

| proxy | us   |
| ----- | ---: |
| nginx | 17.0 |

## Notes

- wrk is missing
";
    assert_eq!(report.markdown(), expected);
}

#[test]
fn report_without_results_is_only_its_environment() {
    let text = Report::new(Vec::new()).markdown();
    assert!(
        !text.contains("Notes") && !text.contains("Targets"),
        "{text}"
    );
}

#[test]
fn numbers_keep_three_digits_or_so() {
    assert_eq!(number(17.249), "17.2");
    assert_eq!(number(1.049), "1.05");
    assert_eq!(number(1234.4), "1234");
}

#[test]
fn ratio_needs_both_values() {
    assert_eq!(ratio(Some(18.0), Some(20.0)), "0.90x");
    assert_eq!(ratio(Some(18.0), None), "-");
    assert_eq!(ratio(None, Some(20.0)), "-");
    assert_eq!(ratio(Some(1.0), Some(0.0)), "-");
}
