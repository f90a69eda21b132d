// Package compat defines the interface for conversions of other programs' files, and contains the code that the
// conversions share.
//
// A [Format] recognises the files of one program and converts their trees to the tree of a tenon.yaml. A [Conversion]
// reports the parts without an equivalent; an import keeps these parts under x-KIND, so that an [Exporter] can write
// them back. The formats are in the packages below this one, one package for each family of programs: editors
// (Claude, Cursor, VS Code), holodeck, trustgraph, aidk and researchai.
//
// Package config calls the formats, for imports, for exports, and for the files that it loads without an import. It
// has the list of the formats and the order in which a file is compared with them. The formats know nothing of
// config: they see trees (config/tree), and the config structs of other packages for the names of their keys.
package compat
