package transport

import (
	"strings"
	"testing"
)

// TestLastWords checks which lines of stderr an error quotes as the last words of a process. It prefers the lines that
// name the error.
func TestLastWords(t *testing.T) {
	for _, tt := range []struct{ name, stderr, want string }{
		{"silent", "", ""},
		{"three lines", "a\nb\n\nc\nd\n", "b|c|d"},
		{"npm", "npm error code E404\nnpm error 404 Not Found - GET https://x/y\nnpm error 404\n" +
			"npm error 404  The requested resource could not be found\nnpm error 404 Note that you can also install from a\n" +
			"npm error 404 tarball, folder, http url, or git url.\nnpm error A complete log of this run can be found in: z\n",
			"npm error code E404|npm error 404 Not Found - GET https://x/y|npm error A complete log of this run can be found in: z"},
		{"node", "node:internal:1\n  throw err;\n  ^\n\nError: Cannot find module '/x'\n    at a\n    at b {\n  code: 'M'\n}\n\nNode.js v20\n",
			"Error: Cannot find module '/x'|Node.js v20"},
		{"python", "Traceback (most recent call last):\n  File \"x\"\n    import y\nModuleNotFoundError: No module named 'y'\n",
			"  File \"x\"|    import y|ModuleNotFoundError: No module named 'y'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.ReplaceAll(lastWords(tt.stderr), "\n", "|"); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
