package table

import "cmp"

// Config is `tables` in tenon.yaml. The comments on the fields are the user's
// documentation.
type Config struct {
	// Layout in which tool columns are written. seed9: nine fields; java10 and legacy6: as KNIME itself stores tools; legacy6 holds workflow tools alone.
	Layout string `yaml:"layout" enum:"seed9,java10,legacy6" default:"seed9"`
	// Tables of the deprecated type.
	Legacy Legacy `yaml:"legacy"`
	// Rows of a record batch; the last one may have fewer.
	BatchRows int `yaml:"batch_rows" default:"1024" min:"1" max:"1048576"`
}

// Legacy says what reading tables of the deprecated type WorkflowToolValueFactory
// does.
type Legacy struct {
	// warn: they are read with a warning; allow: they are read; deny: they are refused, and tenon tables migrate converts them.
	Read string `yaml:"read" enum:"warn,allow,deny" default:"warn"`
}

// WithDefaults returns a copy with the values that are absent filled in.
func (c Config) WithDefaults() Config {
	c.Layout = cmp.Or(c.Layout, string(Seed9))
	c.Legacy.Read = cmp.Or(c.Legacy.Read, LegacyWarn)
	c.BatchRows = cmp.Or(c.BatchRows, DefaultBatchRows)
	return c
}
