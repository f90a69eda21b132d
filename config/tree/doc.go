// Package tree holds what the files of a configuration say, before anything is known about their keys: values with
// their places, and the mistakes in them.
//
// [Parse] turns the bytes of a YAML or JSON file into a [Node]. Aliases are expanded, duplicate keys are errors, and
// depth, size and the number of values are bounded, because files of strangers are read. Each node has its line and
// column and its [Source], the file it is from, so trees of several files can be merged and still name the place of a
// mistake. A source also has the layer of its author and the variables that its texts may use.
//
// A [Sink] collects errors and warnings about nodes. [Sorted] puts them into the order of the files.
//
// The package is the first in the flow of a configuration: package config merges and decodes trees, and the packages
// below compat convert trees of other programs' files to trees of tenon.yaml. It reads no file and knows no key.
package tree
