// Command tenon-parquet converts between Parquet files and Arrow tables.
//
//	tenon-parquet sales.parquet sales.arrow
//	tenon-parquet sales.arrow sales.parquet
//	tenon-parquet sales.parquet - | tenon tables query 'SELECT count(*) FROM t' t=-
//
// It is a separate program in a nested module, because the reader of Parquet adds many megabytes. Build it with
// go build -C cmd/tenon-parquet.
//
// The Arrow side is read and written by package table, with its checks and bounds: the name - is a stream on stdin or
// stdout. Columns keep their types, including tool columns, because the Arrow schema is stored in the Parquet file. The
// files of tools are not. Parquet files are untrusted input as well: a file is read one batch of rows after another,
// the memory for its values is bounded, and corrupt data is an error.
//
// The status is 0, or 2 with an error on stderr. An output file is replaced only when it is complete.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/tenonhq/tenon"
)

const usage = `usage: tenon-parquet INPUT OUTPUT

Converts a Parquet file (.parquet) to an Arrow table (.arrow, or - for a stream), or an Arrow table to a Parquet file.

  tenon-parquet sales.parquet sales.arrow
  tenon-parquet sales.arrow sales.parquet
  tenon-parquet sales.parquet - | tenon tables show -
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tenon-parquet:", tenon.Visible(err.Error()))
		os.Exit(2)
	}
}

// run is main with its surroundings as arguments.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	for _, a := range args {
		if a == "-h" || a == "--help" || a == "help" {
			_, err := io.WriteString(stdout, usage)
			return err
		}
	}
	if len(args) != 2 {
		_, _ = io.WriteString(stderr, usage)
		return tenon.Errorf(tenon.CodeInvalid, "an input and an output are needed")
	}
	in, out := args[0], args[1]
	c := &converter{stdin: stdin, stdout: stdout, warn: func(text string) {
		fmt.Fprintln(stderr, tenon.Visible(text))
	}}
	var rows int64
	var err error
	switch {
	case isParquet(in) == isParquet(out):
		return tenon.Errorf(tenon.CodeInvalid, "one of %s and %s must be a .parquet file; for other formats use tenon "+
			"tables convert", in, out)
	case isParquet(in):
		rows, err = c.toArrow(ctx, in, out)
	default:
		rows, err = c.toParquet(ctx, in, out)
	}
	if err == nil && out != "-" {
		fmt.Fprintf(stderr, "%s: %d rows\n", out, rows)
	}
	return err
}

func isParquet(path string) bool { return strings.HasSuffix(strings.ToLower(path), ".parquet") }
