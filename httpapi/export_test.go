package httpapi

import (
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// HasStatus reports whether the table has a code.
func HasStatus(code tenon.Code) bool {
	_, ok := statuses[code]
	return ok
}

// Route is a line of the table.
type Route struct {
	Method, Pattern, API string
	Open, Owner, Stream  bool
}

// Routes is the table.
func Routes() []Route {
	var list []Route
	for _, r := range routes() {
		list = append(list, Route{r.method, r.pattern, r.api, r.open, r.owner, r.stream})
	}
	return list
}

// Counted serves the table with handlers that only say that they were reached.
func Counted(h *host.Host, cfg Config, reached func()) http.Handler {
	table := routes()
	for i := range table {
		table[i].serve = func(c *call) error { reached(); return c.answer(http.StatusOK, struct{}{}) }
	}
	return build(h, cfg, table)
}
