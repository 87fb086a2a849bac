"""JWT authentication (§5.1): verify with the issuer's keys (JWKS), map claims to identity and capabilities."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp
import jwt

from mew.gateway.config.settings import JwtConfig
from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId, is_participant_id
from mew.protocol.errors import InvalidCapability

from .authenticator import AuthUnavailable, Claims, Identity, TokenSource

__all__ = ["Jwks", "JwtVerifier"]

_TOKEN_BYTES_MAX: Final = 16_384
_JWKS_BYTES_MAX: Final = 1 << 20
_FETCH_S: Final = 5.0
_MAX_AGE_S: Final = 600.0  # a key taken out of the set is good for no longer
_REFRESH_S: Final = 30.0
_RETRY_S: Final = 2.0

_log = logging.getLogger(__name__)


class JwtVerifier:
    """An authenticator for the JWTs of one issuer."""

    def __init__(self, config: JwtConfig, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._keys = Jwks(config.jwks, monotonic=monotonic)

    def is_candidate(self, token: str) -> bool:
        """Whether the token has the form of a JWT signed with one of the configured algorithms."""
        return self._header(token) is not None

    async def verify(self, token: str) -> Claims | None:
        """Check the signature, the issuer, the audience and the times; return the claims.

        Raises:
            AuthUnavailable: the issuer's keys cannot be fetched and none are cached.
        """
        header = self._header(token)
        if header is None:
            return None
        try:
            return self._verified(token, header, await self._keys.candidates(header.get("kid")))
        except _Refused as refused:
            _log_refused(refused)
            return None

    def identity(self, claims: Claims, space: str) -> Identity | None:
        """Return who the claims describe in this space; None if they do not fit the configuration."""
        try:
            return self._identity(claims, space)
        except _Refused as refused:
            _log_refused(refused)
            return None

    def _header(self, token: str) -> dict[str, Any] | None:
        """Return the header of a possible JWT; None for other tokens, without fetching keys."""
        if len(token) > _TOKEN_BYTES_MAX or token.count(".") != 2:
            return None
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            return None
        return header if header.get("alg") in self._config.algorithms else None

    def _verified(self, token: str, header: dict[str, Any], keys: Sequence[jwt.PyJWK]) -> dict[str, Any]:
        reason = "no key of the issuer fits it"
        for key in keys:
            if not _fits(key, header["alg"]):
                continue
            try:
                return jwt.decode(
                    token,
                    key.key,
                    algorithms=[header["alg"]],  # one of those configured, and of the key's own type
                    audience=self._config.audience,
                    issuer=self._config.issuer,
                    leeway=self._config.leeway_s,
                    options={
                        "require": ["exp", "iss", "aud", "sub"],
                        "enforce_minimum_key_length": True,
                    },
                )
            except (jwt.PyJWTError, TypeError, ValueError, OverflowError) as error:
                reason = type(error).__name__  # its text may have what the token says
        raise _Refused(reason)

    def _identity(self, claims: Mapping[str, Any], space: str) -> Identity:
        config = self._config
        participant = claims.get(config.participant_claim)
        if not isinstance(participant, str) or not is_participant_id(participant):
            raise _Refused("is no participant id", config.participant_claim)
        if config.space_claim is not None and space not in _texts(claims, config.space_claim):
            raise _Refused("does not name this space", config.space_claim)
        return Identity(ParticipantId(participant), self._capabilities(claims), TokenSource.JWT)

    def _capabilities(self, claims: Mapping[str, Any]) -> tuple[Capability, ...] | None:
        """Return the capabilities that the claims grant; None if they grant none explicitly."""
        config = self._config
        given: list[Capability] | None = None
        if config.capabilities_claim is not None and config.capabilities_claim in claims:
            given = _parsed(config.capabilities_claim, claims[config.capabilities_claim])
        if config.profile_claim is not None and config.profile_claim in claims:
            profiles = [name for name in _texts(claims, config.profile_claim) if name in config.profiles]
            if not profiles:
                raise _Refused("names no profile there is", config.profile_claim)
            given = [*(given or ()), *(one for name in profiles for one in config.profiles[name])]
        return tuple(given) if given is not None else None


class Jwks:
    """The issuer's keys from a file or URL: cached, and refreshed when stale or when a `kid` is unknown."""

    def __init__(self, source: Path | str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._monotonic = monotonic
        self._keys: tuple[jwt.PyJWK, ...] = ()
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._lock = asyncio.Lock()

    async def candidates(self, kid: object) -> Sequence[jwt.PyJWK]:
        """Return the keys that may have signed a token with this `kid`; all keys without one.

        Raises:
            AuthUnavailable: no keys are cached and none can be fetched.
        """
        if self._is_due(kid):
            async with self._lock:
                if self._is_due(kid):  # whoever had the lock before may have fetched
                    await self._refresh()
        if not self._keys:
            raise AuthUnavailable("the keys of the JWT issuer cannot be fetched")
        return self._having(kid)

    def _is_due(self, kid: object) -> bool:
        now = self._monotonic()
        if now - self._tried_at < (_REFRESH_S if self._keys else _RETRY_S):
            return False
        return not self._having(kid) or now - self._fetched_at >= _MAX_AGE_S

    def _having(self, kid: object) -> Sequence[jwt.PyJWK]:
        return self._keys if kid is None else [key for key in self._keys if key.key_id == kid]

    async def _refresh(self) -> None:
        self._tried_at = self._monotonic()
        try:
            if isinstance(self._source, Path):
                written = await asyncio.to_thread(_read_bounded, self._source)
            else:
                written = await _fetch_bounded(self._source)
            self._keys = _key_set(written)
        except (OSError, ValueError, aiohttp.ClientError) as error:
            _log.warning(
                "the keys of the JWT issuer cannot be fetched",
                extra={"error": _reason(error), "kept": len(self._keys)},
            )
        else:
            self._fetched_at = self._tried_at


class _Refused(Exception):
    """The token is a JWT for us, but says what we do not accept; holds a claim's name, and never its value."""

    def __init__(self, reason: str, claim: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.claim = claim


def _log_refused(refused: _Refused) -> None:
    where = {} if refused.claim is None else {"claim": refused.claim}
    _log.info("a JWT was refused", extra={"reason": refused.reason, **where})


def _fits(key: jwt.PyJWK, algorithm: str) -> bool:
    # a key is for the algorithm it names (RFC 7517 §4.4), or else the usual one of its type: RS256 for RSA
    return key.algorithm_name == algorithm and key.public_key_use in (None, "sig")


def _texts(claims: Mapping[str, Any], claim: str) -> list[str]:
    """A claim that is a text or a list of texts."""
    value = claims.get(claim)
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]


def _parsed(claim: str, written: object) -> list[Capability]:
    if not isinstance(written, list):
        raise _Refused("is no list of capabilities", claim)
    try:
        return [Capability.parse(item) for item in written]
    except InvalidCapability:
        raise _Refused("has what is no capability", claim) from None  # the error would show it


def _key_set(written: bytes) -> tuple[jwt.PyJWK, ...]:
    try:
        return tuple(jwt.PyJWKSet.from_json(written.decode()).keys)
    except (ValueError, TypeError, AttributeError, RecursionError, jwt.PyJWTError):
        raise ValueError("no usable key set") from None  # what came may be anything: it is not shown


def _read_bounded(path: Path) -> bytes:
    with path.open("rb") as file:
        return _bounded(file.read(_JWKS_BYTES_MAX + 1))


async def _fetch_bounded(url: str) -> bytes:
    timeout = aiohttp.ClientTimeout(total=_FETCH_S)
    async with (
        aiohttp.ClientSession(timeout=timeout, headers={"Accept": "application/json"}) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        if response.status != 200:
            raise ValueError(f"expected status 200, is {response.status}")
        written = b""
        async for chunk in response.content.iter_chunked(65_536):
            written = _bounded(written + chunk)
        return written


def _bounded(written: bytes) -> bytes:
    if len(written) > _JWKS_BYTES_MAX:
        raise ValueError(f"more than {_JWKS_BYTES_MAX} bytes")
    return written


def _reason(error: Exception) -> str:
    match error:
        case aiohttp.ClientError():
            return type(error).__name__
        case OSError(strerror=str(text)):
            return text
        case ValueError():
            return str(error)
        case _:
            return type(error).__name__
