// What CofferCrypto uses of OpenSSL 3: the EVP interface, providers, randomness, the two memory helpers and large numbers.
#ifndef COFFER_COPENSSL_H
#define COFFER_COPENSSL_H

#include <openssl/bn.h>
#include <openssl/conf.h>
#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <openssl/rand.h>

#endif
