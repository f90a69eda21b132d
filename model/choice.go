package model

import (
	"slices"

	"github.com/tenonhq/tenon"
)

// Offer returns the request for a wire without lists of allowed tools: if the tool choice is a list, only the tools of
// the list are offered, and the choice is auto or any. Tools that results name stay, because the wire refuses a result
// that names another tool. Other requests are returned themselves.
func Offer(req *tenon.Request) *tenon.Request {
	c := tenon.ParseChoice(req.ToolChoice)
	if !c.IsList() {
		return req
	}
	out := *req
	out.ToolChoice = c.Mode
	if !slices.Contains(c.Names, req.Finder) {
		out.Finder = ""
	}
	plain := len(req.Tools) - req.Deferred
	out.Tools = make([]tenon.Tool, 0, len(c.Names)+req.Deferred)
	for i := range req.Tools {
		if t := &req.Tools[i]; i >= plain || slices.Contains(c.Names, t.Name) {
			out.Tools = append(out.Tools, *t)
		}
	}
	if len(out.Tools) == 0 {
		out.ToolChoice = ""
	}
	return &out
}
