package host

import "github.com/tenonhq/tenon"

func (h callersHandle) Working(who tenon.Principal) (own, all int) { return h.engine.AtWork(who) }

func (h callersHandle) Owner(run string) (who tenon.Principal, ok bool) {
	return h.engine.WorksFor(run)
}

func (h callersHandle) Mask(b []byte) []byte { return h.redactor.Bytes(b) }

func (h callersHandle) RegisterSecret(s tenon.Secret) { h.redactor.Add(s) }
