package web

import "sync"

// renewed keeps an answer that takes a walk through the fleet to work out. An answer
// ages with the clock: whoever asks then still gets it, and it is worked out anew
// behind their back. When what it was made from has changed, whoever asks waits.
type renewed[K comparable, T any] struct {
	mu     sync.Mutex
	of     K // what value was made from
	at     int64
	value  T
	making bool // anew, behind their back
}

// oldest is how often an answer may be as old as it should be renewed: nobody asked
// for a while.
const oldest = 3

// ask answers value, which is shared: read only. Times are unix ms; fresh is how long
// an answer stands as it is.
func (r *renewed[K, T]) ask(of K, now, fresh int64, work func() T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	age := now - r.at // a little below 0: somebody who looked at the clock later came first
	switch {
	case r.at == 0 || r.of != of || age <= -fresh || age >= oldest*fresh:
		r.value = work()
		r.of, r.at = of, now
	case age >= fresh && !r.making:
		r.making = true
		go r.renew(of, now, work)
	}
	return r.value
}

func (r *renewed[K, T]) renew(of K, now int64, work func() T) {
	value, made := attempt(work)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.making = false
	if made && r.of == of && r.at < now {
		r.at, r.value = now, value
	}
}

// attempt is for work that nobody waits for: its panic would end the program. It is
// done again, and told, by the request that finds the answer too old.
func attempt[T any](work func() T) (value T, made bool) {
	defer func() {
		if recover() != nil {
			made = false
		}
	}()
	return work(), true
}
