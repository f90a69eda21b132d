package cli

import (
	"fmt"
	"strconv"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/view"
)

// maxSources bounds the sources that are listed below an answer. The report of the run has all.
const maxSources = 40

// sourceLines returns the numbered sources of an answer, one per line: "[1] title · address".
func sourceLines(list []tenon.Citation) []string {
	var lines []string
	for i, s := range tenon.Sources(list) {
		if i == maxSources {
			lines = append(lines, "… and more: tenon runs show -o json")
			break
		}
		lines = append(lines, "["+strconv.Itoa(i+1)+"] "+safeLine(s.Label()))
	}
	return lines
}

// mediaLine describes a generated image or audio, and how to get it.
func (a *app) mediaLine(run string, m view.Media) string {
	return fmt.Sprintf("generated %s, %d bytes: %s --artifact %s > FILE", safeLine(m.MimeType), m.Bytes,
		a.again("runs show", run), m.Artifact)
}
