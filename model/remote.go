package model

import (
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
)

// fileID begins a [tenon.Part.URI] that is the id of a file at the provider.
const fileID = "file-id:"

// The kinds of [Remote].
const (
	RemoteImage    = "image"
	RemoteDocument = "document"
	RemoteAudio    = "audio"
	RemoteVideo    = "video"
)

// Remote is an image or file that the provider reads itself.
type Remote struct {
	Kind string // RemoteImage and so on
	MIME string // may be empty
	URL  string // an address, or
	ID   string // the id of a file at the provider
}

// RemoteOf returns the address or the file id in a block. ok is false if the block has neither.
func RemoteOf(c tenon.Content) (r Remote, ok bool) {
	if c.Remote == "" {
		return r, false
	}
	r = Remote{Kind: RemoteDocument, MIME: strings.ToLower(c.MimeType), URL: c.Remote}
	if id, ok := strings.CutPrefix(c.Remote, fileID); ok {
		r.ID, r.URL = id, ""
	}
	for _, kind := range []string{RemoteImage, RemoteAudio, RemoteVideo} {
		if strings.HasPrefix(r.MIME, kind+"/") {
			r.Kind = kind
		}
	}
	if c.Type == tenon.ContentImage {
		r.Kind = RemoteImage
	}
	return r, true
}

// hasFileID reports whether a message of a request has the id of a file.
func hasFileID(req *tenon.Request) bool {
	for _, m := range req.Messages {
		for i := range m.Parts {
			if strings.HasPrefix(m.Parts[i].URI, fileID) {
				return true
			}
		}
	}
	return false
}

// Web reports whether the address is a web address.
func (r Remote) Web() bool {
	return strings.HasPrefix(r.URL, "https://") || strings.HasPrefix(r.URL, "http://")
}

// Format returns the subtype of the MIME type, which is Bedrock's name of the format.
func (r Remote) Format() string {
	_, format, _ := strings.Cut(r.MIME, "/")
	if format == "jpg" {
		return "jpeg"
	}
	return format
}

// note returns a text that replaces a block that is not sent to the model.
func (r Remote) note() string {
	if r.ID != "" {
		return fmt.Sprintf("[%s omitted: this model does not take the file id %s]", r.Kind, Visible(r.ID))
	}
	return fmt.Sprintf("[%s at %s: this model does not read it]", r.Kind, Visible(r.URL))
}
