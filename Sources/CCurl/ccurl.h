// libcurl, and what Swift cannot import of it: its functions with any number of arguments.
#ifndef COFFER_CCURL_H
#define COFFER_CCURL_H

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/socket.h>

typedef size_t (*coffer_curl_transfer)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode coffer_curl_set_number(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode coffer_curl_set_size(CURL *handle, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(handle, option, value);
}

// The text is copied.
static inline CURLcode coffer_curl_set_text(CURL *handle, CURLoption option, const char *value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode coffer_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode coffer_curl_set_transfer(CURL *handle, CURLoption option, coffer_curl_transfer value) {
  return curl_easy_setopt(handle, option, value);
}

// HTTP and HTTPS, and nothing else that libcurl knows.
static inline CURLcode coffer_curl_allow_http_only(CURL *handle) {
#if LIBCURL_VERSION_NUM >= 0x075500
  return curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  return curl_easy_setopt(handle, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

// libcurl has an option for the number of unanswered probes only since 8.9.
static int coffer_curl_set_probe_count(void *context, curl_socket_t socket, curlsocktype purpose) {
  int count = (int)(intptr_t)context;
  (void)purpose;
#ifdef TCP_KEEPCNT
  // If this fails, the system's number applies.
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
#endif
  return CURL_SOCKOPT_OK;
}

// Ends a connection whose peer is gone: probes it after `idle` seconds of silence, then every `interval` seconds, `count` times.
static inline CURLcode coffer_curl_keep_alive(CURL *handle, long idle, long interval, long count) {
  CURLcode result = curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  if (result == CURLE_OK) result = curl_easy_setopt(handle, CURLOPT_TCP_KEEPIDLE, idle);
  if (result == CURLE_OK) result = curl_easy_setopt(handle, CURLOPT_TCP_KEEPINTVL, interval);
  if (result == CURLE_OK) result = curl_easy_setopt(handle, CURLOPT_SOCKOPTFUNCTION, coffer_curl_set_probe_count);
  if (result == CURLE_OK) result = curl_easy_setopt(handle, CURLOPT_SOCKOPTDATA, (void *)(intptr_t)count);
  return result;
}

static inline CURLcode coffer_curl_get_number(CURL *handle, CURLINFO info, long *value) {
  return curl_easy_getinfo(handle, info, value);
}

// What a message of a multi handle says of an ended transfer; Swift sees no unions of C.
static inline CURLcode coffer_curl_result(const CURLMsg *message) { return message->data.result; }

#endif
