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
	// Pieces is the digest of the manifest of a table of more than 64 MiB, which is stored in several blobs; see
	// package store/pieces. Digest is then the digest of the whole file, and no blob has it.
	Pieces string `json:"pieces,omitempty"`
}

// TableColumn is one column of a [Table]. Type is string, integer, number, boolean, timestamp, binary or
// list; for other columns it is the name of the Arrow type.
type TableColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Size is a number of bytes. A configuration writes it as 64KiB, 1MB or a bare number.
type Size int
