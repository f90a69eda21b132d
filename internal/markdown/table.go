package markdown

import "strings"

// isDelimiter reports whether a line is the delimiter row of a table, which is its second line.
func isDelimiter(l string) bool {
	cells := cellsOf(l)
	for _, c := range cells {
		c = strings.TrimSuffix(strings.TrimPrefix(c, ":"), ":")
		if c == "" || strings.Trim(c, "-") != "" {
			return false
		}
	}
	return len(cells) > 0 && strings.Contains(l, "-")
}

// cellsOf splits a row of a table. A bar in code or after a backslash belongs to its cell.
func cellsOf(l string) (cells []string) {
	l = strings.TrimSpace(l)
	l = strings.TrimPrefix(l, "|")
	from, inCode := 0, false
	for i := 0; i < len(l); i++ {
		switch l[i] {
		case '\\':
			i++
		case '`':
			inCode = !inCode
		case '|':
			if !inCode {
				cells = append(cells, strings.TrimSpace(l[from:i]))
				from = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(l[min(from, len(l)):]); rest != "" || len(cells) == 0 {
		cells = append(cells, rest)
	}
	return cells
}

// parseTable reads a table in GitHub's form.
func parseTable(lines []string, i int) (block, int) {
	b := block{kind: table, rows: [][]string{cellsOf(lines[i])}}
	for _, c := range cellsOf(lines[i+1]) {
		switch left, right := strings.HasPrefix(c, ":"), strings.HasSuffix(c, ":"); {
		case left && right:
			b.aligned = append(b.aligned, 'c')
		case right:
			b.aligned = append(b.aligned, 'r')
		default:
			b.aligned = append(b.aligned, 'l')
		}
	}
	for i += 2; i < len(lines) && strings.Contains(lines[i], "|") && strings.TrimSpace(lines[i]) != ""; i++ {
		b.rows = append(b.rows, cellsOf(lines[i]))
	}
	return b, i
}

const (
	gap       = 2 // columns between the columns of a table
	leastCell = 6 // least columns of a cell when a table is narrowed
)

// layTable lays out a table. Wide columns are wrapped. If the table is still too wide, each row is drawn as lines of
// NAME: value.
func layTable(b block, width int) []line {
	columns := len(b.rows[0])
	cells := make([][]line, len(b.rows))
	natural := make([]int, columns)
	for i, row := range b.rows {
		cells[i] = make([]line, columns)
		for j := range columns {
			style := ""
			if i == 0 {
				style = styleStrong
			}
			if j < len(row) {
				cells[i][j] = inlines(row[j], style)
			}
			natural[j] = max(natural[j], cells[i][j].width())
		}
	}
	widths, ok := fit(natural, width-gap*(columns-1))
	if !ok {
		return records(cells, width)
	}
	var out []line
	for i, row := range cells {
		out = append(out, layRow(row, widths, b.aligned)...)
		if i == 0 {
			var under line
			for j, w := range widths {
				if j > 0 {
					under = append(under, span{text: strings.Repeat(" ", gap)})
				}
				under = append(under, span{text: strings.Repeat("─", w), style: styleDim})
			}
			out = append(out, under)
		}
	}
	return out
}

// fit narrows the widest columns until all columns fit. It reports whether each column is still wide enough.
func fit(natural []int, room int) (widths []int, ok bool) {
	widths = append(widths, natural...)
	total := 0
	for _, w := range widths {
		total += w
	}
	for total > room {
		widest := 0
		for j, w := range widths {
			if w > widths[widest] {
				widest = j
			}
		}
		if widths[widest] <= leastCell {
			return widths, false
		}
		step := max(min((total-room)/len(widths), (widths[widest]-leastCell)/2), 1)
		widths[widest] -= step
		total -= step
	}
	return widths, true
}

func layRow(row []line, widths []int, aligned []byte) (out []line) {
	wrapped, height := make([][]line, len(row)), 1
	for j, c := range row {
		wrapped[j] = wrap(c, max(widths[j], 1))
		height = max(height, len(wrapped[j]))
	}
	for h := range height {
		var l line
		for j, lines := range wrapped {
			var c line
			if h < len(lines) {
				c = lines[h]
			}
			space := max(widths[j]-c.width(), 0)
			left := 0
			if j < len(aligned) {
				left = map[byte]int{'r': space, 'c': space / 2}[aligned[j]]
			}
			if j > 0 {
				left += gap
			}
			l = append(append(l, span{text: strings.Repeat(" ", left)}), c...)
			if rest := widths[j] - c.width() - left + gap*boolInt(j > 0); j < len(wrapped)-1 && rest > 0 {
				l = append(l, span{text: strings.Repeat(" ", rest)})
			}
		}
		out = append(out, l)
	}
	return out
}

// records lays out a table that is too wide for columns.
func records(cells [][]line, width int) (out []line) {
	for i, row := range cells[1:] {
		if i > 0 {
			out = append(out, nil)
		}
		for j, c := range row {
			head := append(append(line{}, cells[0][j]...), span{text: ": "})
			out = append(out, wrap(append(head, c...), width)...)
		}
	}
	if len(cells) == 1 {
		for _, c := range cells[0] {
			out = append(out, wrap(c, width)...)
		}
	}
	return out
}
