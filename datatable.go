package tenon

// Table describes a table of data. The rows are an Arrow IPC file in the store's blobs; they are not part of
// a journal.
type Table struct {
	Name        string        `json:"name"`
	Description string        `json:"description,omitempty"`
	Columns     []TableColumn `json:"columns"`
	Rows        int64         `json:"rows"`
	Bytes       int64         `json:"bytes,omitempty"` // size of the Arrow file
	Digest      string        `json:"digest,omitempty"`
}

// TableColumn is one column of a [Table]. Type is string, integer, number, boolean, timestamp, binary or
// list; for other columns it is the name of the Arrow type.
type TableColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}
