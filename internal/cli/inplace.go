package cli

import (
	"os"
	"strings"

	"github.com/tenonhq/tenon"
)

// neverInPlace refuses to write a result over a file that the command reads, also through a link: if the command does
// not make what is expected, the input is lost.
func neverInPlace(inputs, outputs []string) error {
	for _, out := range outputs {
		st, err := os.Stat(out)
		if out == "-" || err != nil || !st.Mode().IsRegular() {
			continue
		}
		for _, in := range inputs {
			if in != "-" && in != "" && sameFile(in, out) {
				return tenon.Errorf(tenon.CodeInvalid, "%s is never changed in place; write to another file",
					tenon.Visible(in))
			}
		}
	}
	return nil
}

// portFiles returns the files of arguments such as PORT=FILE.
func portFiles(list []string) []string {
	files := make([]string, len(list))
	for i, arg := range list {
		files[i] = arg
		if _, file, named := strings.Cut(arg, "="); named {
			files[i] = file
		}
	}
	return files
}
