//! Repairs tables that standard Markdown does not recognize: rows after a blank line or a comment, a header without a
//! line of dashes, or with too few dashes.

use super::{Block, BlockKind, Row, Table, parsed};

/// Turns paragraphs of `| … |` lines into rows. They join the table right above if they have as many cells. Otherwise
/// two or more of them form a new table, whose header is the first.
pub(super) fn mend(source: &str, blocks: &mut Vec<Block>) {
    let mut mended: Vec<Block> = Vec::with_capacity(blocks.len());
    for mut block in blocks.drain(..) {
        if let Some(lines) = written_as_rows(source, &block) {
            let is_headed = lines.lines().nth(1).is_some_and(is_ruler);
            let above = mended.last_mut().and_then(|above| match &mut above.kind {
                BlockKind::Table(table) if !is_headed && table.header.len() == cells_in(lines) => Some(table),
                _ => None,
            });
            let mut rows = rows(lines, block.range.start);
            if let Some(table) = above {
                table.rows.append(&mut rows);
                continue;
            }
            if rows.len() > 1 {
                let header = rows.remove(0).cells;
                block.kind = BlockKind::Table(Table { header, rows });
            }
        }
        mended.push(block);
    }
    *blocks = mended;
}

/// The text of a paragraph if each of its lines begins and ends with a bar.
fn written_as_rows<'a>(source: &'a str, block: &Block) -> Option<&'a str> {
    let BlockKind::Paragraph(_) = &block.kind else { return None };
    let text = source.get(block.range.clone())?.trim_end();
    let is_row = |line: &str| {
        let line = line.trim();
        line.len() > 2 && line.starts_with('|') && line.ends_with('|') && cells_in(line) > 1
    };
    text.lines().all(is_row).then_some(text)
}

/// The number of cells in the first line.
fn cells_in(lines: &str) -> usize {
    let line = lines.lines().next().unwrap_or_default().trim();
    let inner = line.trim_start_matches('|').trim_end_matches('|').replace("\\|", "");
    inner.matches('|').count() + 1
}

/// `|---|:-:|`
fn is_ruler(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| c.is_whitespace() || matches!(c, '|' | '-' | ':'))
}

/// Reads lines as rows of a table that is wide enough for all of them. `offset` is their position in the source.
fn rows(lines: &str, offset: usize) -> Vec<Row> {
    let width = lines.lines().map(cells_in).max().unwrap_or(1);
    let head = format!("{}|\n{}|\n", "| ".repeat(width), "|-".repeat(width));
    let tables = parsed(&format!("{head}{lines}")).into_iter().filter_map(|block| match block.kind {
        BlockKind::Table(table) => Some(table.rows),
        _ => None,
    });
    let rows = tables.flatten().map(|row| Row { offset: (row.offset + offset).saturating_sub(head.len()), ..row });
    let is_ruled = |row: &Row| {
        row.cells.iter().all(|cell| cell.is_empty() || is_ruler(cell)) && row.cells.iter().any(|cell| is_ruler(cell))
    };
    rows.filter(|row| !is_ruled(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Document;

    /// Lines with their cells.
    type Rows = Vec<(usize, Vec<String>)>;

    fn tables(text: &str) -> Vec<(Vec<String>, Rows)> {
        let document = Document::new(text);
        let row = |row: &super::Row| (document.line(row.offset), row.cells.clone());
        document.tables().map(|(table, _)| (table.header.clone(), table.rows.iter().map(row).collect())).collect()
    }

    #[test]
    fn rows_behind_a_gap_belong_to_the_table_above() {
        let text =
            "| A | B |\n|-|-|\n| 1 | 2 |\n\n| 3 | **4** |\n<!-- | 5 | 6 | -->\n| 7 | 8 |\n\ntext\n\n| 9 | 10 |\n";
        let [(header, rows)] = &tables(text)[..] else { panic!("{:?}", tables(text)) };
        assert_eq!(header, &["A", "B"]);
        let lines: Vec<_> = rows.iter().map(|(line, cells)| (*line, cells.join("/"))).collect();
        assert_eq!(lines, [(3, "1/2".to_owned()), (5, "3/4".to_owned()), (7, "7/8".to_owned())]);
    }

    #[test]
    fn a_header_needs_no_line_of_dashes_below_it() {
        let [(header, rows)] = &tables("| A | B |\n| 1 | 2 |\n| 3 | 4 |\n")[..] else { panic!() };
        assert_eq!((header.join("/"), rows.len(), rows[1].0), ("A/B".to_owned(), 2, 3));
        let [(header, rows)] = &tables("text\n\n| A | B | C |\n|---|---|\n| 1 | 2 | 3 |\n")[..] else { panic!() };
        assert_eq!((header.join("/"), rows[0].1.join("/"), rows[0].0), ("A/B/C".to_owned(), "1/2/3".to_owned(), 5));
        assert!(tables("| not a table |\n").is_empty() && tables("| a | b |\n").is_empty());
        assert!(tables("a | b\nc | d\n").is_empty());
    }
}
