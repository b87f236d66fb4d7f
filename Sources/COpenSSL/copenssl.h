// What CofferCrypto uses of OpenSSL 3: the EVP interface, randomness, and the two memory helpers.
#ifndef COFFER_COPENSSL_H
#define COFFER_COPENSSL_H

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#endif
