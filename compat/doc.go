// Package compat is the edge to other programs: the interface behind which their files are converted, and what the
// conversions share.
//
// A [Format] recognises the files of one program and converts their trees to the tree of a tenon.yaml. A [Conversion]
// reports what has no equivalent; an import keeps that under x-KIND, so that an [Exporter] can write it back. The
// formats are in the packages below this one, one package for each family of programs: editors (Claude, Cursor, VS
// Code), holodeck, trustgraph, aidk and researchai.
//
// Package config calls the formats, for imports, for exports, and for the files that it loads without an import. It
// has the list of the formats and the order in which a file is compared with them. The formats know nothing of config:
// they see trees (config/tree), and the config structs of other packages for the names of their keys.
package compat
