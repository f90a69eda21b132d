package tenon

// Table is a table of data: what is told of it. Its rows are an Arrow IPC file that
// the store keeps as a blob; they are no part of a journal.
type Table struct {
	Name        string        `json:"name"`
	Description string        `json:"description,omitempty"`
	Columns     []TableColumn `json:"columns"`
	Rows        int64         `json:"rows"`
	Bytes       int64         `json:"bytes,omitempty"` // of the Arrow file
	Digest      string        `json:"digest,omitempty"`
}

// TableColumn is one column of a [Table]. Type is string, integer, number, boolean,
// timestamp, binary or list, else the Arrow type's name.
type TableColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}
