package httpapi

import "github.com/tenonhq/tenon"

// HasStatus reports whether the table has the code.
func HasStatus(code tenon.Code) bool {
	_, ok := statuses[code]
	return ok
}
