package table

import (
	"cmp"

	"github.com/tenonhq/tenon"
)

// Config is the `tables` section of tenon.yaml. The comments on the fields are the user
// documentation.
type Config struct {
	// Layout of tool columns in written tables. seed9 has nine fields. java10 and legacy6 are the
	// layouts of KNIME; legacy6 holds only workflow tools.
	Layout string `yaml:"layout" enum:"seed9,java10,legacy6" default:"seed9"`
	// Handling of tables of the deprecated type.
	Legacy Legacy `yaml:"legacy"`
	// Rows per record batch. The last batch may have fewer.
	BatchRows int `yaml:"batch_rows" default:"1024" min:"1" max:"1048576"`
	// Largest Arrow data of one table of a run, such as 2000MiB. By default it is half of what the disk of the store
	// has free, without 256 MiB. A table of more than 64 MiB is stored in pieces of 8 MiB and never held in memory as
	// a whole.
	MaxBytes tenon.Size `yaml:"max_bytes" min:"1"`
}

// Legacy configures how tables of the deprecated type WorkflowToolValueFactory are read.
type Legacy struct {
	// warn reads such tables with a warning, allow reads them without one, deny refuses them. tenon
	// tables migrate converts them.
	Read string `yaml:"read" enum:"warn,allow,deny" default:"warn"`
}

// WithDefaults returns a copy in which unset fields have their defaults.
func (c Config) WithDefaults() Config {
	c.Layout = cmp.Or(c.Layout, string(Seed9))
	c.Legacy.Read = cmp.Or(c.Legacy.Read, LegacyWarn)
	c.BatchRows = cmp.Or(c.BatchRows, DefaultBatchRows)
	return c
}
