"""Rotary embeddings. Pairs of channels lie apart in ours and in transformers, side by side in the other packages."""

import math

import pytest
import torch

from tests.encodings.values.helpers import encode, fresh, state_of

from .helpers import agree, cells, encoded, neighbours, oracle, queries_and_keys, steps

pytestmark = pytest.mark.oracle

LENGTH = 301


def llama(length, rope="default", trained=64, **parameters):
    """Cosine and sine of transformers, and what turns vectors by them."""
    module = oracle("transformers.models.llama.modeling_llama")
    parameters = {"rope_type": rope, "rope_theta": 10000.0} | parameters
    config = module.LlamaConfig(
        hidden_size=48, num_attention_heads=2, max_position_embeddings=trained, rope_parameters=parameters
    )
    cos_sin = module.LlamaRotaryEmbedding(config)(torch.zeros(1), torch.arange(length)[None])
    return lambda q, k: module.apply_rotary_pos_emb(q, k, *cos_sin)


def check_against(turn, encoding, length=LENGTH, tolerance=2e-4):
    """Turned vectors one by one, and their products."""
    ours, theirs = encoded(encoding, steps(length)), turn(*queries_and_keys(length, 24))
    for one, other in zip(ours, theirs, strict=True):
        agree(one, other, tolerance)


def x_transformers(length, dim=24, **options):
    module = oracle("x_transformers.x_transformers")
    frequencies, scale = module.RotaryEmbedding(dim, **options).forward_from_seq_len(length)
    inverse = 1 / scale

    def turn(q, k):
        turned = (module.apply_rotary_pos_emb(neighbours(x), frequencies, s) for x, s in ((q, scale), (k, inverse)))
        return tuple(turned)

    return turn


def rotary_embedding_torch(length, **options):
    rotary = oracle("rotary_embedding_torch").RotaryEmbedding(24, **options)
    if options.get("use_xpos"):
        return lambda q, k: rotary.rotate_queries_and_keys(neighbours(q), neighbours(k))
    return lambda q, k: tuple(rotary.rotate_queries_or_keys(neighbours(x)) for x in (q, k))


def check_neighbours(turn, encoding, length=LENGTH, tolerance=2e-4):
    ours, theirs = encoded(encoding, steps(length)), turn(*queries_and_keys(length, 24))
    for one, other in zip(ours, theirs, strict=True):
        agree(neighbours(one), other.detach(), tolerance)


def check_logits(turn, encoding, length=LENGTH, tolerance=2e-4):
    q, k = encoded(encoding, steps(length))
    other_q, other_k = turn(*queries_and_keys(length, 24))
    agree((q @ k.mT).tril(), (other_q @ other_k.mT).detach().tril(), tolerance)


def rotary(name, trained=64, **options):
    return fresh(name, (trained,), width=48, **{"causal": True} | options)


@pytest.mark.parametrize("theta", [10000.0, 500000.0])
def test_rope_of_transformers(theta):
    check_against(llama(LENGTH, rope_theta=theta), rotary("rope", theta=theta))


@pytest.mark.parametrize("package", [x_transformers, rotary_embedding_torch])
def test_rope_of_packages_that_pair_neighbours(package):
    check_neighbours(package(LENGTH), rotary("rope"))
    check_logits(package(LENGTH), rotary("rope"), tolerance=2e-3)


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_axial_rope_of_timm(indexing):
    """The authors put columns first (xy), ours are rows first."""
    layers = oracle("timm.layers")
    table = layers.RotaryEmbeddingCat(
        24, in_pixels=False, temperature=100.0, feat_shape=[3, 5], grid_indexing=indexing
    ).get_embed()
    positions = cells(3, 5) if indexing == "ij" else [p[::-1] for p in cells(3, 5)]
    encoding = fresh("rope", (9, 9), width=48)
    for ours, before in zip(encoded(encoding, positions), queries_and_keys(15, 24), strict=True):
        agree(neighbours(ours), layers.apply_rot_embed_cat(neighbours(before), table))


def test_axial_rope_of_rotary_embedding_torch():
    package = oracle("rotary_embedding_torch")
    frequencies = package.RotaryEmbedding(12, theta=100).get_axial_freqs(3, 5)
    for ours, before in zip(
        encoded(fresh("rope", (9, 9), width=48), cells(3, 5)), queries_and_keys(15, 24), strict=True
    ):
        theirs = package.apply_rotary_emb(frequencies, neighbours(before).unflatten(2, (3, 5)))
        agree(neighbours(ours), theirs.flatten(2, 3))


def test_axial_rope_of_the_authors_formula():
    """Heo et al.: exp(i theta_t p_x) for even and exp(i theta_t p_y) for odd pairs, theta_t = 100^(-t / (K/4))."""
    q, _ = queries_and_keys(15, 24)
    turned = torch.view_as_complex(torch.stack(q.chunk(2, dim=-1), dim=-1))  # rows' pairs, then columns'
    exponents = torch.tensor(
        [[100 ** (-t / 6) * p for p in position for t in range(6)] for position in cells(3, 5)], dtype=torch.float32
    )
    theirs = torch.view_as_real(turned * torch.polar(torch.ones_like(exponents), exponents))
    agree(encoded(fresh("rope", (9, 9), width=48), cells(3, 5))[0], torch.cat(theirs.unbind(-1), dim=-1))


@pytest.mark.parametrize("layer", [0, 1])
def test_rope_mixed_of_timm(layer):
    """Their first frequencies are the columns'."""
    layers = oracle("timm.layers")
    theirs = layers.RotaryEmbeddingMixed(48, depth=2, num_heads=2, feat_shape=[3, 5])
    encoding = encode("rope-mixed", cells(3, 5), width=48)
    with torch.no_grad():
        theirs.freqs.copy_(encoding.frequencies.flip(1).transpose(0, 1))
        table = theirs.get_embed([3, 5])[layer]
        for ours, before in zip(encoded(encoding, cells(3, 5), layer), queries_and_keys(15, 24), strict=True):
            agree(neighbours(ours), layers.apply_rot_embed_cat(neighbours(before), table))


def test_rope_mixed_begins_as_timms():
    """Two perpendicular directions for each head, of the same lengths and turning the same way."""
    theirs = oracle("timm.layers").RotaryEmbeddingMixed(48, depth=40, num_heads=2, temperature=10.0).freqs.detach()
    ours = fresh("rope-mixed", (9, 9), width=48, layers=40).frequencies.detach().flip(1).transpose(0, 1)
    agree(ours.norm(dim=0), theirs.norm(dim=0))
    shapes = [torch.linalg.det(x.unflatten(-1, (2, 6)).movedim((0, 3), (-1, -2))) for x in (ours, theirs)]
    agree(*shapes)


def test_partial_rope_of_transformers():
    module = oracle("transformers.models.gpt_neox.modeling_gpt_neox")
    parameters = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}
    config = module.GPTNeoXConfig(hidden_size=48, num_attention_heads=2, rope_parameters=parameters)
    cos_sin = module.GPTNeoXRotaryEmbedding(config)(torch.zeros(1), torch.arange(LENGTH)[None])
    check_against(lambda q, k: module.apply_rotary_pos_emb(q, k, *cos_sin), rotary("partial-rope"))


def test_partial_rope_of_x_transformers():
    module = oracle("x_transformers.x_transformers")
    frequencies, _ = module.RotaryEmbedding(12).forward_from_seq_len(LENGTH)
    encoding = rotary("partial-rope", fraction=0.5)
    for ours, before in zip(encoded(encoding, steps(LENGTH)), queries_and_keys(LENGTH, 24), strict=True):
        first = torch.cat((neighbours(before[..., :12]), before[..., 12:]), dim=-1)
        theirs = module.apply_rotary_pos_emb(first, frequencies)
        agree(torch.cat((neighbours(ours[..., :12]), ours[..., 12:]), dim=-1), theirs, 2e-4)


@pytest.mark.parametrize("p", [0.75, 0.5, 1.0])
def test_p_rope_of_transformers(p):
    check_against(llama(LENGTH, "proportional", partial_rotary_factor=p), rotary("p-rope", p=p))


@pytest.mark.parametrize("length", [64, 65, LENGTH])
def test_ntk_of_transformers(length):
    """Dynamic; their factor 1 stretches to just the length of the text."""
    check_against(llama(length, "dynamic", factor=1.0), rotary("ntk-rope"), length)


def test_ntk_of_x_transformers_and_rotary_embedding_torch():
    encoding = rotary("ntk-rope", factor=4.0)
    check_neighbours(x_transformers(LENGTH, base_rescale_factor=4.0), encoding)
    check_neighbours(rotary_embedding_torch(LENGTH, theta_rescale_factor=4.0), encoding)


@pytest.mark.parametrize(
    ("trained", "options"), [(64, {}), (1000, {}), (1000, {"fast": 8.0, "slow": 2.0}), (100000, {}), (10, {})]
)
def test_yarn_of_transformers(trained, options):
    """Lengths below 2 pi, which no pair turns over, are left out: theirs slows none then, ours all but one."""
    names = {"fast": "beta_fast", "slow": "beta_slow"}
    parameters = {names[name]: value for name, value in options.items()}
    parameters |= {"factor": 4.0, "original_max_position_embeddings": trained}
    theirs = llama(LENGTH, "yarn", trained, **parameters)
    check_against(theirs, rotary("yarn", trained, factor=4.0, **options), tolerance=2e-4)


@pytest.mark.parametrize("length", [64, 65, LENGTH])
def test_yarn_stretches_by_the_text_where_transformers_is_given_the_factor(length):
    factor = max(1.0, length / 64)
    theirs = llama(length, "yarn", 64, factor=factor, original_max_position_embeddings=64)
    check_against(theirs, rotary("yarn"), length, tolerance=2e-4)


@pytest.mark.parametrize("package", [x_transformers, rotary_embedding_torch])
def test_xpos_logits_of_packages(package):
    """Vectors differ by where a package takes the middle of the text to be; logits do not."""
    options = {"scale_base": 100} if package is x_transformers else {"xpos_scale_base": 100}
    check_logits(package(LENGTH, use_xpos=True, **options), rotary("xpos", scale_base=100.0), tolerance=2e-3)


def test_interpolated_of_transformers_and_x_transformers():
    encoding = rotary("interpolated", LENGTH // 4)
    factor = LENGTH / (LENGTH // 4)
    check_against(llama(LENGTH, "linear", factor=factor), encoding)
    check_neighbours(x_transformers(LENGTH, interpolation_factor=factor), encoding)


@pytest.mark.parametrize("layer", [0, 1])
def test_pope_of_x_transformers(layer):
    module = oracle("x_transformers.x_transformers")
    encoding = encode("pope", steps(LENGTH), causal=True)
    theirs = module.PolarEmbedding(12, heads=2)
    with torch.no_grad():
        theirs.learned_bias.copy_(encoding.delta % math.tau - math.tau)  # theirs keeps to one turn
        phases, shift = theirs(torch.arange(LENGTH))
        q, k = queries_and_keys(LENGTH)
        both = module.apply_polar_pos_emb(q, phases), module.apply_polar_pos_emb(k, phases + shift)
    for ours, other in zip(encoded(encoding, steps(LENGTH), layer), both, strict=True):
        agree(ours, other, 2e-4)


@pytest.mark.parametrize("positions", [steps(9), cells(3, 5)], ids=["text", "grid"])
def test_lie_re_of_scipys_exponential(positions):
    """No package has it; the authors' generators are upper triangles, ours lower: the same up to a sign."""
    linalg = oracle("scipy.linalg")
    extent = (9,) * len(positions[0])
    encoding = encode("lie-re", positions, extent, block=4)
    for p, blocks in zip(positions, state_of(encoding, positions), strict=True):
        for c, block in enumerate(blocks):
            generator = torch.zeros(4, 4, dtype=torch.float64)
            rows, columns = torch.tril_indices(4, 4, offset=-1)
            for axis, x in enumerate(p):
                generator[rows, columns] += x / 9 * encoding.entries[axis, c].detach().double()
            agree(block.double(), torch.from_numpy(linalg.expm((generator - generator.T).numpy())), 1e-4)
            agree(block @ block.T, torch.eye(4), 1e-5)
