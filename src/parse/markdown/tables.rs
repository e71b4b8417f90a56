//! Joins rows to the table above them that a blank line or a comment parts from it, as in teams that the npm tool made.

use super::{Block, BlockKind, Row, parsed};

pub(super) fn join(source: &str, blocks: Vec<Block>) -> Vec<Block> {
    let mut joined: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match (joined.last_mut().map(|above| &mut above.kind), lines_of_rows(source, &block)) {
            (Some(BlockKind::Table(table)), Some(lines)) if table.header.len() == cells_in(lines) => {
                table.rows.append(&mut rows(lines, block.range.start, table.header.len()));
            }
            _ => joined.push(block),
        }
    }
    joined
}

/// The text of a paragraph if each of its lines begins and ends with a bar.
pub(super) fn lines_of_rows<'a>(source: &'a str, block: &Block) -> Option<&'a str> {
    let BlockKind::Paragraph(_) = &block.kind else { return None };
    let text = source.get(block.range.clone())?.trim_end();
    let is_row = |line: &str| line.trim().len() > 2 && line.trim().starts_with('|') && line.trim().ends_with('|');
    text.lines().all(is_row).then_some(text)
}

/// The number of cells in the first line.
fn cells_in(lines: &str) -> usize {
    lines.lines().next().unwrap_or_default().trim().replace("\\|", "").matches('|').count().saturating_sub(1)
}

/// Reads lines as rows of a table with so many columns. `offset` is their position in the source.
fn rows(lines: &str, offset: usize, width: usize) -> Vec<Row> {
    let head = format!("{}|\n{}|\n", "| ".repeat(width), "|-".repeat(width));
    let tables = parsed(&format!("{head}{lines}")).into_iter().filter_map(|block| match block.kind {
        BlockKind::Table(table) => Some(table.rows),
        _ => None,
    });
    tables.flatten().map(|row| Row { offset: (row.offset + offset).saturating_sub(head.len()), ..row }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Document;

    #[test]
    fn rows_behind_a_gap_belong_to_the_table_above() {
        let text =
            "| A | B |\n|-|-|\n| 1 | 2 |\n\n| 3 | **4** |\n<!-- | 5 | 6 | -->\n| 7 | 8 |\n\ntext\n\n| 9 | 10 |\n";
        let document = Document::new(text);
        let (table, _) = document.tables().next().expect("a table");
        let rows: Vec<_> = table.rows.iter().map(|row| (document.line(row.offset), row.cells.join("/"))).collect();
        assert_eq!(rows, [(3, "1/2".to_owned()), (5, "3/4".to_owned()), (7, "7/8".to_owned())]);
        assert_eq!(document.stray_rows().collect::<Vec<_>>(), [11]);
    }
}
