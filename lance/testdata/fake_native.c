/*
 * A stand-in for the native library, to test the binding alone: it answers what
 * it is told to, and counts what a real library would not show.
 *
 *   -DABI=n          another ABI version
 *   -DWITHOUT_<sym>  leaves a symbol out
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ABI
#define ABI 2
#endif

typedef struct {
	uint64_t engine, cancel;
	const uint8_t *op;
	size_t op_len;
	const uint8_t *json;
	size_t json_len;
	const uint8_t *body;
	size_t body_len;
} LfRequest;

typedef struct {
	uint8_t *json;
	size_t json_len;
	uint8_t *body;
	size_t body_len;
} LfReply;

#define TOKENS 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static long allocated, freed, nulls, active, peak, tokens_made, tokens_freed;
static unsigned char fired[TOKENS];
static uint8_t *script, *last, *last_body;
static size_t script_len, last_len, last_body_len;
static int script_status;

static uint8_t *copy(const void *from, size_t n) {
	if (n == 0)
		return (uint8_t *)1; /* where Rust's empty vectors are */
	uint8_t *p = malloc(n);
	memcpy(p, from, n);
	allocated++;
	return p;
}

static void answer(LfReply *r, const void *json, size_t n) {
	r->json = copy(json, n);
	r->json_len = n;
}

static void keep(uint8_t **to, size_t *to_len, const uint8_t *from, size_t n) {
	free(*to);
	*to = malloc(n + 1);
	memcpy(*to, from, n);
	*to_len = n;
}

/* Waits until the token fires. */
static int wait_for(const LfRequest *q, LfReply *r) {
	static const char gone[] = "{\"class\":\"cancelled\",\"message\":\"token fired\"}";
	active++;
	if (active > peak)
		peak = active;
	pthread_cond_broadcast(&moved);
	while (!fired[q->cancel % TOKENS])
		pthread_cond_wait(&moved, &lock);
	active--;
	answer(r, gone, sizeof gone - 1);
	return 1;
}

static int counts(LfReply *r) {
	char text[256];
	int n = snprintf(text, sizeof text,
		"{\"allocated\":%ld,\"freed\":%ld,\"nulls\":%ld,\"peak\":%ld,\"tokens_made\":%ld,\"tokens_freed\":%ld}",
		allocated, freed, nulls, peak, tokens_made, tokens_freed);
	answer(r, text, (size_t)n);
	return 0;
}

int dispatch(const LfRequest *q, LfReply *r) {
#define OP(name) (q->op_len == sizeof name - 1 && memcmp(q->op, name, q->op_len) == 0)
	if (!q->op || !q->json || !q->body)
		nulls++;
	if (OP("open")) {
		answer(r, "{\"engine\":7}", 12);
		return 0;
	}
	if (OP("close"))
		return 0;
	if (OP("counts"))
		return counts(r);
	if (OP("wait"))
		return wait_for(q, r);
	if (OP("await_active")) { /* the body's length says how many */
		while (active < (long)q->body_len)
			pthread_cond_wait(&moved, &lock);
		return 0;
	}
	if (OP("echo")) {
		answer(r, q->json, q->json_len);
		r->body = copy(q->body, q->body_len);
		r->body_len = q->body_len;
		return 0;
	}
	if (OP("script_ok") || OP("script_fail")) {
		script_status = OP("script_fail");
		keep(&script, &script_len, q->body, q->body_len);
		return 0;
	}
	if (OP("last")) {
		answer(r, last, last_len);
		r->body = copy(last_body, last_body_len);
		r->body_len = last_body_len;
		return 0;
	}
	keep(&last, &last_len, q->json, q->json_len);
	keep(&last_body, &last_body_len, q->body, q->body_len);
	answer(r, script, script_len);
	r->body = copy(script, script_len);
	r->body_len = script_len;
	return script_status;
}

#ifndef WITHOUT_lf_abi_version
uint32_t lf_abi_version(void) { return ABI; }
#endif

#ifndef WITHOUT_lf_call
int32_t lf_call(const LfRequest *q, LfReply *r) {
	pthread_mutex_lock(&lock);
	memset(r, 0, sizeof *r);
	int status = dispatch(q, r);
	pthread_mutex_unlock(&lock);
	return status;
}
#endif

#ifndef WITHOUT_lf_reply_free
void lf_reply_free(LfReply *r) {
	pthread_mutex_lock(&lock);
	if (r->json_len) {
		memset(r->json, 0xDD, r->json_len); /* who kept it reads rubbish */
		free(r->json);
		freed++;
	}
	if (r->body_len) {
		memset(r->body, 0xDD, r->body_len);
		free(r->body);
		freed++;
	}
	memset(r, 0, sizeof *r);
	pthread_mutex_unlock(&lock);
}
#endif

#ifndef WITHOUT_lf_cancel_new
uint64_t lf_cancel_new(void) {
	pthread_mutex_lock(&lock);
	uint64_t token = (uint64_t)++tokens_made;
	pthread_mutex_unlock(&lock);
	return token;
}
#endif

#ifndef WITHOUT_lf_cancel_fire
void lf_cancel_fire(uint64_t token) {
	pthread_mutex_lock(&lock);
	fired[token % TOKENS] = 1;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
}
#endif

#ifndef WITHOUT_lf_cancel_free
void lf_cancel_free(uint64_t token) {
	(void)token;
	pthread_mutex_lock(&lock);
	tokens_freed++;
	pthread_mutex_unlock(&lock);
}
#endif
