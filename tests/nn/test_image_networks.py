"""Image and token views: networks by shape, bytes in and bytes out, everything in one model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from drawings import captions, shapes

import vedute
from vedute import MVP, drop_views
from vedute.data import scaling
from vedute.data.views import Views
from vedute.estimators import sentence_decoding
from vedute.methods import find
from vedute.nn.coders import Decoder, Encoder, by_convolution, start_at
from vedute.nn.cuda_streams import in_parallel
from vedute.nn.likelihoods import LIKELIHOODS

SMALL = dict(network="polymnist", latent_dim=4, map_hidden=(8,), steps=6, warmup=2, device="cpu")
SMALL |= dict(random_state=0, batch_size=16)


def count(module):
    return sum(p.numel() for p in module.parameters())


# Networks.


@pytest.mark.parametrize("output", ["linear", "tanh"])
def test_image_networks_begin_at_the_mean_image(output):
    mean = np.linspace(-0.8, 0.8, 3 * 8 * 8).reshape(3, 8, 8)
    model = torch.nn.Module()
    model.encoders = torch.nn.ModuleList([Encoder((3, 8, 8), (), 2), Encoder((4,), (), 2)])
    model.decoders = torch.nn.ModuleList([Decoder(2, (), (3, 8, 8), output, True)])
    plain = model.encoders[0](torch.zeros(1, 3, 8, 8)).mean
    start_at(model, [mean, np.zeros(4)])
    image = torch.from_numpy(mean).float()
    told = model.decoders[0](torch.zeros(1, 2))[0]  # the nonlinear path is silent at first
    assert torch.allclose(told, image, atol=1e-6)
    assert torch.equal(model.encoders[0](image[None]).mean, plain)
    assert model.encoders[1].center is None


def test_a_white_ground_is_no_news():
    views = shapes.load(60, size=16)
    model = MVP(**SMALL).fit(views)
    white = torch.from_numpy(model.views_[0].scaler.mean).float()
    assert white.mean() > 0.5
    assert torch.equal(model.model_.encoders[0].center, white)


@pytest.mark.parametrize(
    ("side", "dim", "network", "parameters"),
    [(28, 512, "mvp", 3_125_376), (64, 512, "mvp", 5_485_184), (28, 96, "mvp", 1_766_304),
     (64, 256, "mvp", 4_566_912), (28, 512, "polymnist", 1_667_648)],
)  # fmt: skip
def test_encoders_have_the_published_sizes(side, dim, network, parameters):
    assert count(Encoder((3, side, side), (), dim, network=network)) == parameters


@pytest.mark.parametrize(
    ("side", "dim", "network", "parameters"),
    [(28, 512, "mvp", 2_601_091), (64, 512, "mvp", 4_960_899), (28, 96, "mvp", 1_749_123),
     (28, 144, "mvp", 1_847_427), (64, 256, "mvp", 4_436_611), (64, 448, "mvp", 4_829_827),
     (28, 512, "polymnist", 1_143_747)],
)  # fmt: skip
def test_decoders_have_the_published_sizes(side, dim, network, parameters):
    assert count(Decoder(dim, (), (3, side, side), "tanh", False, network)) == parameters


@pytest.mark.parametrize("shape", [(3, 28, 28), (1, 8, 8), (3, 33, 33), (1, 17, 17), (3, 5, 7)])
@pytest.mark.parametrize("network", ["auto", "mvp", "polymnist", "mlp"])
def test_any_image_goes_in_and_comes_out(shape, network):
    q = Encoder(shape, (6,), 5, network=network)(torch.rand(2, *shape))
    assert q.mean.shape == q.logvar.shape == (2, 5)
    out = Decoder(5, (6,), shape, "tanh", True, network)(torch.randn(3, 2, 5))
    assert out.shape == (3, 2, *shape)
    assert out.abs().max() <= 1


@pytest.mark.parametrize("length", [1, 3, 4, 9, 16])
def test_tokens_of_any_length(length):
    shape = (length, 20)
    x = torch.randint(20, (2, length))
    tokens = LIKELIHOODS["tokens"]
    assert Encoder(shape, (), 5, likelihood=tokens)(x).mean.shape == (2, 5)
    logits = Decoder(5, (), shape, "linear", True, likelihood=tokens)(torch.randn(3, 2, 5))
    assert logits.shape == (3, 2, length, 20)


def test_what_is_no_picture_is_seen_by_an_mlp():
    assert by_convolution((3, 28, 28))
    assert not any(map(by_convolution, [(3, 28, 30), (2, 28, 28), (3, 4, 4), (28, 28), (28,)]))
    with pytest.raises(ValueError, match="network must be one of auto, mlp, mvp, polymnist"):
        Encoder((3, 28, 28), (), 4, network="resnet")


def test_without_a_gpu_tasks_run_one_by_one():
    x = torch.arange(3.0)
    assert in_parallel(lambda i: x * i, range(3), [x])[2].tolist() == [0, 2, 4]


def test_bytes_have_exact_moments():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.integers(256, size=(30, 1, 8, 8), dtype=np.uint8))
    seen = torch.from_numpy(rng.random((30, 1, 8, 8)) < 0.7)
    found = scaling.fit("standard", x, seen)
    floats = np.where(seen, x.numpy() / 127.5 - 1, np.nan)
    np.testing.assert_allclose(found.mean, np.nanmean(floats, 0), atol=1e-6)
    np.testing.assert_allclose(found.std, np.nanstd(floats, 0), atol=1e-5)
    assert found.restore(found.mean).max() <= 255
    still = torch.full((7001, 1, 1, 1), 253, dtype=torch.uint8)
    assert scaling.fit("standard", still, torch.ones_like(still).bool()).std.item() == 0


# One model.


def mixed(n=40):
    """Pictures, sentences and a table of the same objects."""
    pairs = captions.load(n, size=16)
    table = torch.randn(n, 5, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(n, 3, dtype=torch.bool)
    x = (*pairs.x, table)
    whole = Views(x, mask, pairs.index, (None,) * 3, ("image", "caption", "table"), y=pairs.y)
    return whole, drop_views(whole, 0.6, seed=0)


@pytest.fixture
def few_candidates(monkeypatch):
    """Limit the candidates of sentences, if their quality is not tested."""
    monkeypatch.setattr(sentence_decoding, "CANDIDATES", 2)


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("name", ["mvp", "mvtcae", "mmvae"])
def test_images_captions_and_tables_in_one_model(name, tmp_path):
    whole, views = mixed()
    known = find(name)().get_params()
    model = find(name)(**{k: v for k, v in SMALL.items() if k in known}).fit(views)
    filled = model.impute(views)
    assert [x.dtype for x in filled.x] == [torch.uint8, torch.int64, torch.float32]
    for v, (x, y) in enumerate(zip(filled.x, whole.x, strict=True)):
        seen = views.mask[:, v]
        assert torch.equal(x[seen], y[seen])
    assert filled.x[1].min() >= 0
    assert filled.x[1].max() < len(captions.vocabulary())
    made = model.generate(3)
    assert made["image"].shape == (3, 3, 16, 16)
    assert made["caption"].shape == (3, captions.LENGTH)
    model.save(tmp_path / "model")
    again = vedute.load(tmp_path / "model")
    for a, b in zip(again.impute(views).x, filled.x, strict=True):
        assert torch.equal(a, b)
    np.testing.assert_array_equal(again.transform(views), model.transform(views))


@pytest.mark.usefixtures("few_candidates")
def test_arrays_of_word_numbers_are_tokens_where_one_says_so():
    whole, views = mixed()
    lists = [x.numpy().astype(float) for x in views.x]
    for v, x in enumerate(lists):
        x[~views.mask[:, v].numpy()] = np.nan
    settings = SMALL | {"likelihood": {"view1": "tokens"}}
    model = MVP(**settings).fit(lists)
    told = model.impute(lists)[1]
    assert set(np.unique(told)) <= set(range(len(captions.vocabulary())))
    seen = views.mask[:, 1].numpy()
    np.testing.assert_array_equal(told[seen], whole.x[1].numpy()[seen])


@pytest.mark.usefixtures("few_candidates")
def test_a_word_nobody_has_seen_is_refused():
    _, views = mixed()
    model = MVP(**SMALL).fit(views)
    x = list(views.x)
    x[1] = x[1] + 500 * views.mask[:, 1:2]
    strange = Views(tuple(x), views.mask, views.index, views.holes, views.names)
    with pytest.raises(ValueError, match=r"'caption' holds the token \d+; fitted on those below"):
        model.impute(strange)


@pytest.mark.parametrize("strange", [-1.0, 2.5])
def test_what_is_no_token_is_refused(strange):
    words = np.random.default_rng(0).integers(5, size=(30, 4)).astype(float)
    words[3, 2] = strange
    with pytest.raises(ValueError, match=r"'view0' holds .*; tokens are whole numbers from 0"):
        MVP(**SMALL, likelihood={"view0": "tokens"}).fit([words, np.ones((30, 2)) * words[:, :1]])


def test_what_lies_under_missing_pictures_changes_nothing():
    objects = shapes.load(30, size=8)
    views = drop_views(objects, 0.6, seed=0)
    junk = tuple(
        torch.where(views.mask[:, v].view(-1, 1, 1, 1), x, torch.full_like(x, 77))
        for v, x in enumerate(views.x)
    )
    poisoned = Views(junk, views.mask, views.index, views.holes, views.names)
    one, two = (MVP(**SMALL).fit(d) for d in (views, poisoned))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)


def test_a_killed_training_on_images_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch):
    views = drop_views(shapes.load(40, size=8), 0.5, seed=0)
    settings = SMALL | dict(steps=12, early_stopping=False, batch_size=8)
    whole = MVP(**settings).fit(views)
    settings = settings | {"checkpoint_minutes": 0}
    broken = MVP(**settings, checkpoint=str(tmp_path))
    broken.callbacks = [_stop_at(6)]
    with pytest.raises(_Killed):
        broken.fit(views)
    assert list(tmp_path.iterdir())
    resumed = MVP(**settings, checkpoint=str(tmp_path)).fit(views)
    terms = [[r["terms"] for r in m.history_] for m in (whole, resumed)]
    assert terms[0] == terms[1]
    np.testing.assert_array_equal(resumed.embedding_, whole.embedding_)


class _Killed(BaseException):
    pass


def _stop_at(step):
    def look(record):
        if record["step"] >= step:
            raise _Killed

    return look


@pytest.mark.slow
def test_a_sentence_is_decoded_as_a_whole_where_none_was_given():
    pairs = captions.load(30, size=16)
    hidden = torch.zeros(30, 2, dtype=torch.bool)
    hidden[:15, 1] = True
    model = MVP(**SMALL).fit(pairs.hide(hidden))
    data = model.learner.scaled(pairs.hide(hidden)).bare()
    seen, net = data.floating(), model.model_.eval()
    with torch.no_grad():
        plain = net.decode(seen)
    pictures, words = model.decode(data)
    np.testing.assert_array_equal(pictures, plain[0].numpy())  # pictures are decoded once
    np.testing.assert_array_equal(words[0, 15:], plain[1][0, 15:].argmax(-1))  # given ones stay
    for i in range(3):
        expected = likeliest_sentence(net, seen[i : i + 1], plain[1][0, i])
        np.testing.assert_array_equal(words[0, i], expected)


@torch.no_grad()
def likeliest_sentence(net, sample, logits):
    """Most likely of the candidates, each encoded and decoded separately, twice."""
    found = []
    for noise in sentence_decoding._noise(logits.shape):
        words = (logits + noise).argmax(-1)
        for _ in range(2):
            words = read_alone(net, sample, words).argmax(-1)
        own = read_alone(net, sample, words)
        score = sum(
            of.log_softmax(-1)[t, word] for of in (logits, own) for t, word in enumerate(words)
        )
        found.append((float(score), words))
    return max(found, key=lambda pair: pair[0])[1]


def read_alone(net, sample, words):
    """What the model tells of a sentence (T,) that is all it is given, (T, V)."""
    only = torch.tensor([[True, False]])
    return net.decode(sample.given({1: words[None]}).hide(only))[1][0, 0]
